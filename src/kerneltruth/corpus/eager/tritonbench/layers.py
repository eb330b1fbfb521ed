"""PyTorch's own convolution, normalization and contraction, as a candidate."""

import torch
import torch.nn.functional as F

from kerneltruth.corpus.eager.aids import in_float32_on_a_cpu


@in_float32_on_a_cpu
def sigmoid_conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    convolved = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return torch.sigmoid(convolved, out=out)


sigmoid_conv2d_unaided = sigmoid_conv2d.__wrapped__


def silu_batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
):
    normalized = F.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    return F.silu(normalized)


def tensordot(a, b, dims):
    return torch.tensordot(a, b, dims=dims)
