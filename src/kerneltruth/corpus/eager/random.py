"""The generators of the suite in plain PyTorch: one function per task.

No input says where their results go, and without `device` PyTorch makes them on the CPU: that
would be no baseline of what a GPU does.
"""

import torch

HOME = "cuda" if torch.cuda.is_available() else None


def logspace(
    start,
    end,
    steps,
    base=10.0,
    out=None,
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
        out=out,
        dtype=dtype,
        layout=layout,
        device=device or HOME,
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
        device=device or (HOME if out is None else out.device),
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )
