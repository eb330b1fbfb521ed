"""Convolutions and what follows them, as PyTorch computes it."""

import torch.nn.functional as F

from kerneltruth.corpus.eager.aids import in_float32_on_a_cpu


@in_float32_on_a_cpu
def fused_conv2d_add(
    input,
    weight,
    bias=None,
    other=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    alpha=1,
    out=None,
):
    result = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    if other is not None:
        result = result.add(other, alpha=alpha)
    return result if out is None else out.copy_(result)


fused_conv2d_add_unaided = fused_conv2d_add.__wrapped__


@in_float32_on_a_cpu
def fused_dropout_relu_batch_norm_conv2d(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    p=0.5,
    training=True,
    inplace=False,
):
    result = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    # Without running statistics those of the batch serve in evaluation too.
    result = F.relu(F.batch_norm(result, None, None, training=True), inplace=inplace)
    return F.dropout(result, p=p, training=training, inplace=inplace)


fused_dropout_relu_batch_norm_conv2d_unaided = fused_dropout_relu_batch_norm_conv2d.__wrapped__


@in_float32_on_a_cpu
def fused_gelu_conv2d(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    approximate="none",
    out=None,
):
    result = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    result = F.gelu(result, approximate=approximate)
    return result if out is None else out.copy_(result)


fused_gelu_conv2d_unaided = fused_gelu_conv2d.__wrapped__


@in_float32_on_a_cpu
def fused_instance_norm_selu_conv2d(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    num_features=None,
    eps=1e-5,
    momentum=0.1,
    affine=False,
    track_running_stats=False,
):
    result = F.selu(F.conv2d(input, weight, bias, stride, padding, dilation, groups))
    return F.instance_norm(result, momentum=momentum, eps=eps)


fused_instance_norm_selu_conv2d_unaided = fused_instance_norm_selu_conv2d.__wrapped__
