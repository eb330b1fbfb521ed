"""PyTorch's own pooling, as a candidate."""

import torch.nn.functional as F


def avg_pool1d(input, kernel_size=4, stride=2, padding=1, ceil_mode=False, count_include_pad=True):
    return F.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def max_pool2d(input, kernel_size=3, stride=2, padding=1):
    return F.max_pool2d(input, kernel_size, stride, padding)


def adaptive_avg_pool2d(input, output_size=(4, 4)):
    return F.adaptive_avg_pool2d(input, output_size)
