"""PyTorch's own optimizer, as a candidate."""

import torch


def SGD(
    params,
    lr=1e-3,
    momentum=0,
    weight_decay=0,
    dampening=0,
    nesterov=False,
    maximize=False,
    foreach=None,
    differentiable=False,
    fused=None,
):
    return torch.optim.SGD(
        params,
        lr=lr,
        momentum=momentum,
        weight_decay=weight_decay,
        dampening=dampening,
        nesterov=nesterov,
        maximize=maximize,
        foreach=foreach,
        differentiable=differentiable,
        fused=fused,
    )
