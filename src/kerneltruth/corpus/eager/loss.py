"""PyTorch's own losses, as a candidate."""

import torch.nn.functional as F


def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    return F.binary_cross_entropy(input, target, weight=weight, reduction=reduction)


def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean"):
    return F.cross_entropy(
        input, target, weight=weight, ignore_index=ignore_index, reduction=reduction
    )


def kl_div(input, target, reduction="batchmean", log_target=False):
    return F.kl_div(input, target, reduction=reduction, log_target=log_target)


def mse_loss(input, target, reduction="mean"):
    return F.mse_loss(input, target, reduction=reduction)


def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    return F.nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def smooth_l1_loss(input, target, beta=1.0, reduction="mean"):
    return F.smooth_l1_loss(input, target, reduction=reduction, beta=beta)
