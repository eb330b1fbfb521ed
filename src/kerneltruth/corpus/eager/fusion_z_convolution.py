"""Two-dimensional convolutions and what follows them in plain PyTorch."""

import torch.nn.functional as F

from kerneltruth.corpus.eager.aids import in_float32_on_a_cpu


@in_float32_on_a_cpu
def fused_leaky_relu_conv2d(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    negative_slope=0.01,
    inplace=False,
):
    out = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return F.leaky_relu(out, negative_slope, inplace)


fused_leaky_relu_conv2d_unaided = fused_leaky_relu_conv2d.__wrapped__


@in_float32_on_a_cpu
def fused_relu_conv2d(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, inplace=False
):
    return F.relu(F.conv2d(input, weight, bias, stride, padding, dilation, groups), inplace)


fused_relu_conv2d_unaided = fused_relu_conv2d.__wrapped__


@in_float32_on_a_cpu
def fused_pixel_shuffle_conv2d(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, upscale_factor=2
):
    out = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return F.pixel_shuffle(out, upscale_factor)


fused_pixel_shuffle_conv2d_unaided = fused_pixel_shuffle_conv2d.__wrapped__


@in_float32_on_a_cpu
def fused_relu_batch_norm_conv2d(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    running_mean=None,
    running_var=None,
    bn_weight=None,
    bn_bias=None,
    training=False,
    momentum=0.1,
    eps=1e-05,
    inplace=False,
):
    out = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    out = F.batch_norm(out, running_mean, running_var, bn_weight, bn_bias, training, momentum, eps)
    return F.relu(out, inplace)


fused_relu_batch_norm_conv2d_unaided = fused_relu_batch_norm_conv2d.__wrapped__


@in_float32_on_a_cpu
def fused_relu_max_pool2d_conv2d(
    input,
    weight,
    bias=None,
    conv_stride=1,
    conv_padding=0,
    conv_dilation=1,
    conv_groups=1,
    pool_kernel_size=2,
    pool_stride=None,
    pool_padding=0,
    pool_dilation=1,
    pool_ceil_mode=False,
    inplace=False,
):
    out = F.conv2d(input, weight, bias, conv_stride, conv_padding, conv_dilation, conv_groups)
    out = F.max_pool2d(
        out, pool_kernel_size, pool_stride, pool_padding, pool_dilation, pool_ceil_mode
    )
    return F.relu(out, inplace)


fused_relu_max_pool2d_conv2d_unaided = fused_relu_max_pool2d_conv2d.__wrapped__


@in_float32_on_a_cpu
def fused_silu_layer_norm_conv2d(
    x,
    weight,
    conv_weight,
    conv_bias=None,
    conv_stride=1,
    conv_padding=0,
    conv_dilation=1,
    conv_groups=1,
    ln_eps=1e-05,
):
    out = F.conv2d(x, conv_weight, conv_bias, conv_stride, conv_padding, conv_dilation, conv_groups)
    return F.silu(F.layer_norm(out, out.shape[1:], eps=ln_eps))


fused_silu_layer_norm_conv2d_unaided = fused_silu_layer_norm_conv2d.__wrapped__
