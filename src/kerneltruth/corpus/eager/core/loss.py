"""PyTorch's own losses, as a candidate."""

import torch.nn.functional as F


def cross_entropy(input, target, weight=None, ignore_index=-100, label_smoothing=0.0):
    return F.cross_entropy(
        input, target, weight=weight, ignore_index=ignore_index, label_smoothing=label_smoothing
    )


def kl_div(input, target, reduction="batchmean"):
    return F.kl_div(input, target, reduction=reduction)


def binary_cross_entropy(input, target, reduction="mean"):
    return F.binary_cross_entropy(input, target, reduction=reduction)


def mse_loss(input, target, reduction="mean"):
    return F.mse_loss(input, target, reduction=reduction)


def smooth_l1_loss(input, target, beta=1.0, reduction="mean"):
    return F.smooth_l1_loss(input, target, reduction=reduction, beta=beta)
