"""What a candidate receives for an argument of the judge's: a tensor, or an attribute's value."""

from __future__ import annotations

import torch

from kerneltruth.runner.arguments import ScalarArgument
from kerneltruth.runner.child import placing
from kerneltruth.runner.child.binding import Offered
from kerneltruth.runner.timing.messages import Supply


def offered_tensor(supply: Supply, value: torch.Tensor) -> Offered:
    """Return a tensor as the candidate receives it."""
    return Offered(name=supply.name, value=value, tensor=True, member_of=supply.member_of)


def offered_scalar(argument: ScalarArgument) -> Offered:
    """Return an attribute as the candidate receives it."""
    value, default = (
        tuple(v) if isinstance(v, list) else v for v in (argument.value, argument.default)
    )
    same = type(value) is type(default) and value == default
    if isinstance(value, str) and value.startswith("torch."):
        value = placing.dtype_of(value.removeprefix("torch."))
    return Offered(name=argument.name, value=value, default=default, optional=same)
