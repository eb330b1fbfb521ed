"""The convolutions of the suite in plain PyTorch: one function per task."""

import torch.nn.functional as F


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return F.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose2d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    return F.conv_transpose2d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )
