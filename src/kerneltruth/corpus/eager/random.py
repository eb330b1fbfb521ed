"""The generators of the suite in plain PyTorch: one function per task."""

import torch


def logspace(
    start,
    end,
    steps,
    base=10.0,
    dtype=None,
    layout=torch.strided,
    device=None,
    requires_grad=False,
):
    return torch.logspace(
        start,
        end,
        steps,
        base,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def rand(
    *size,
    generator=None,
    out=None,
    dtype=None,
    layout=torch.strided,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    return torch.rand(
        *size,
        generator=generator,
        out=out,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )
