"""The convolutions of the suite in plain PyTorch: one function per task."""

import torch.nn.functional as F

from kerneltruth.corpus.eager.aids import in_float32_on_a_cpu


@in_float32_on_a_cpu
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return F.conv2d(input, weight, bias, stride, padding, dilation, groups)


conv2d_unaided = conv2d.__wrapped__


def conv_transpose2d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    return F.conv_transpose2d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )
