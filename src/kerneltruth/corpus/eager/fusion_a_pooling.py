"""Pooling and what comes before it, as PyTorch computes it."""

import torch
import torch.nn.functional as F


def fused_avg_pool2d_cosine_similarity(x1, x2, kernel_size, stride=None, padding=0, eps=1e-8):
    similarity = F.cosine_similarity(x1, x2, dim=1, eps=eps).unsqueeze(1)
    return F.avg_pool2d(similarity, kernel_size, stride, padding)


def fused_cos_avg_pool1d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
):
    return F.avg_pool1d(
        torch.cos(input), kernel_size, stride, padding, ceil_mode, count_include_pad
    )


def fused_fractional_max_pool2d_with_relu(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False
):
    return F.fractional_max_pool2d(
        F.relu(input),
        kernel_size,
        output_size=output_size,
        output_ratio=output_ratio,
        return_indices=return_indices,
    )
