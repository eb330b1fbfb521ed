"""Formulas that several tasks share, as references or as admissible ways to compute them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def gelu_by_formula(input: Tensor, approximate: str) -> Tensor:
    """GELU as its definition spells it."""
    if approximate == "tanh":
        inner = 0.7978845608028654 * (input + 0.044715 * input * input * input)
        return 0.5 * input * (1 + torch.tanh(inner))
    return 0.5 * input * (1 + torch.erf(input * 0.7071067811865476))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A linear layer; in half precision as a kernel has it that adds the bias to a stored product.

    Where product and bias nearly cancel, that is further off than rounding the sum alone.
    """
    if bias is None or input.dtype not in (torch.float16, torch.bfloat16):
        return F.linear(input, weight, bias)
    return F.linear(input, weight) + bias


def stored(x: Tensor, *inputs: Tensor | None) -> Tensor:
    """An intermediate as a kernel has it that stores it in the dtype of its inputs.

    That dtype is the narrowest that holds the inputs: a formula is called in a wider one.
    """
    given = [t for t in inputs if t is not None]
    narrow = x
    for dtype in (torch.bfloat16, torch.float16):
        if all(_holds(dtype, t) for t in given):
            narrow = narrow.to(dtype).to(x.dtype)
    return narrow


def narrowest(x: Tensor, *more: Tensor | None) -> torch.dtype:
    """The dtype that the inputs of a formula come from, which is called in a wider one."""
    given = [t for t in (x, *more) if t is not None]
    fitting = (d for d in (torch.bfloat16, torch.float16) if all(_holds(d, t) for t in given))
    return next(fitting, x.dtype)


def fits_half(*tensors: Tensor) -> bool:
    """Whether the values are float16's own, so that the operator may be computed in float16.

    There a small eps is 0 and a large exponential infinite, which PyTorch does not hide.
    """
    return all(_holds(torch.float16, t) for t in tensors)


def _holds(dtype: torch.dtype, t: Tensor) -> bool:
    return torch.equal(t.nan_to_num(), t.to(dtype).to(t.dtype).nan_to_num())
