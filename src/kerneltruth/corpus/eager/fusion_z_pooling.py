"""Adaptive pooling and batch norm, fused with what follows, in plain PyTorch."""

import torch
import torch.nn.functional as F


def fused_pairwise_distance_adaptive_avg_pool2d(
    x1, x2, output_size, p=2.0, eps=1e-06, keepdim=False
):
    one = F.adaptive_avg_pool2d(x1, output_size)
    other = F.adaptive_avg_pool2d(x2, output_size)
    return torch.linalg.vector_norm(one - other, p, dim=(1, 2, 3), keepdim=keepdim) + eps


def fused_sigmoid_adaptive_avg_pool2d(input, output_size):
    return torch.sigmoid(F.adaptive_avg_pool2d(input, output_size))


def fused_sigmoid_batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-05,
):
    normalized = F.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    return torch.sigmoid(normalized)
