"""Share formulas among tasks, as references or as admissible ways to compute them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def gelu_by_formula(input: Tensor, approximate: str) -> Tensor:
    """Compute GELU by its definition."""
    if approximate == "tanh":
        inner = 0.7978845608028654 * (input + 0.044715 * input * input * input)
        return 0.5 * input * (1 + torch.tanh(inner))
    return 0.5 * input * (1 + torch.erf(input * 0.7071067811865476))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute a linear layer; in half precision, add the bias to a stored product.

    If product and bias nearly cancel, this differs by more than rounding the sum alone.
    """
    if bias is None or input.dtype not in (torch.float16, torch.bfloat16):
        return F.linear(input, weight, bias)
    return F.linear(input, weight) + bias


def stored(x: Tensor, *inputs: Tensor | None) -> Tensor:
    """Round an intermediate as a kernel does that stores it in its inputs' dtype.

    That dtype is the narrowest that holds the inputs: a formula is called in a wider one.
    """
    given = [t for t in inputs if t is not None]
    narrow = x
    for dtype in (torch.bfloat16, torch.float16):
        if all(_holds(dtype, t) for t in given):
            narrow = narrow.to(dtype).to(x.dtype)
    return narrow


def attended(scores: Tensor, v: Tensor, hidden: Tensor | None, *inputs: Tensor | None) -> Tensor:
    """Compute the softmax of the scores times v as fused kernels do.

    Subnormal and non-finite weights are 0; values that the mask hides are not read; a query without
    any valid score gives 0. PyTorch on a CPU does so for queries whose scores are all NaN, or all
    minus infinity, and in half precision where one is infinity.

    Args:
        scores: minus infinity where the mask hides them.
        v: the values.
        hidden: the mask, of the scores' shape.
        inputs: they decide the dtype of stored weights (see `stored`).
    """
    nothing = ((scores == -torch.inf) | scores.isnan()).all(-1, keepdim=True)
    nothing |= (scores == torch.inf).any(-1, keepdim=True)
    weights = _normal(torch.exp(scores - scores.amax(-1, keepdim=True)))
    weights = _normal(weights / weights.sum(-1, keepdim=True))
    weights = torch.where(nothing, 0.0, weights)
    if v.isfinite().all():
        return weights @ v
    terms = stored(weights, *inputs).unsqueeze(-1) * v.unsqueeze(-3)
    if hidden is not None:
        terms = terms.masked_fill(hidden.unsqueeze(-1), 0.0)
    return terms.sum(-2)


def with_added_mask(scores: Tensor, v: Tensor, hidden: Tensor) -> Tensor:
    """Compute attention whose mask is added to the scores, as PyTorch on a GPU does if unfused.

    Adding minus infinity to a hidden score that is NaN or infinity gives NaN, and so a NaN row.

    Args:
        scores: none of them hidden.
        v: the values.
        hidden: the mask, of the scores' shape.
    """
    mask = torch.zeros_like(scores).masked_fill(hidden, -torch.inf)
    return torch.softmax(scores + mask, -1) @ v


def split_for_tensor_cores(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Split float32 factors as fused kernels do that multiply on tensor cores with little loss.

    A factor is the sum of two in TF32; for an infinite factor, the second is NaN.
    """
    if narrowest(*tensors) != torch.float32:
        return tensors
    return tuple(torch.where(t.isinf(), torch.nan, t) for t in tensors)


def _normal(x: Tensor) -> Tensor:
    return torch.where(x < torch.finfo(x.dtype).tiny, 0.0, x)


def narrowest(x: Tensor, *more: Tensor | None) -> torch.dtype:
    """Return the dtype that a formula's inputs come from; the formula is called in a wider one."""
    given = [t for t in (x, *more) if t is not None]
    fitting = (d for d in (torch.bfloat16, torch.float16) if all(_holds(d, t) for t in given))
    return next(fitting, x.dtype)


def computed_narrow(function: Callable[..., Tensor], *inputs: Tensor | None) -> Tensor:
    """Compute a step in the dtype that the inputs come from.

    At most float32, as in a step before a conversion to float64.
    """
    given = [t for t in inputs if t is not None]
    known = (torch.bfloat16, torch.float16, torch.float32)
    dtype = next((d for d in known if all(_holds(d, t) for t in given)), given[0].dtype)
    return function(*(None if t is None else t.to(dtype) for t in inputs)).to(given[0].dtype)


def fits_half(*tensors: Tensor) -> bool:
    """Return whether the values are float16's own, so that the operator may compute in float16.

    A small eps is then 0 and a large exponential infinite, and PyTorch does not hide that.
    """
    return all(_holds(torch.float16, t) for t in tensors)


def _holds(dtype: torch.dtype, t: Tensor) -> bool:
    # A Python number may replace a tensor if the task allows it.
    t = torch.as_tensor(t)
    return torch.equal(t.nan_to_num(), t.to(dtype).to(t.dtype).nan_to_num())


def _logit_with_narrow_ends(dtype: torch.dtype) -> Callable[..., Tensor]:
    """Logit with 1 - eps rounded to a narrow dtype, where that holds the input: it may be 1."""

    def logit(input: Tensor, eps: float | None) -> Tensor:
        plain = torch.logit(input, eps)
        if eps is None:
            return plain
        low = torch.tensor(eps, dtype=dtype)
        clamped = input.clamp(float(low), float(1 - low))
        narrow = input.to(dtype).to(input.dtype) == input
        return torch.where(narrow, torch.logit(clamped), plain)

    return logit


LOGIT_WITH_NARROW_ENDS = tuple(_logit_with_narrow_ends(t) for t in (torch.float16, torch.bfloat16))
