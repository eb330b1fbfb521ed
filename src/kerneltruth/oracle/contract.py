"""Contracts: whether what was returned keeps the claims of a task whose answer is not unique."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import torch

from kerneltruth.oracle.dtypes import epsilon, is_float
from kerneltruth.oracle.reference import widened
from kerneltruth.tasks.arguments import PARTS
from kerneltruth.tasks.model import OUT
from kerneltruth.tasks.spec import Claim, Evidence, Output, Task

_COMPUTED = "the claims can be computed"


def broken_claim(
    task: Task,
    due: tuple[Output, ...],
    dtype: str,
    inputs: Mapping[str, torch.Tensor | None],
    scalars: Mapping[str, Any],
    outputs: tuple[torch.Tensor, ...],
    references: tuple[torch.Tensor, ...],
    *,
    tf32: bool = True,
) -> Claim | None:
    """The first claim of the task's contract that the outputs break, or None.

    Complex outputs and references come as real and imaginary parts (see `reference.real_parts`).
    """
    if task.contract is None:
        return None
    parts = PARTS.get(dtype, dtype)
    evidence = Evidence(
        inputs={
            n: None if t is None else widened(t, torch.float64)
            for n, t in inputs.items()
            if n != OUT
        },
        scalars=dict(scalars),
        outputs=tuple(_whole(o, t, dtype) for o, t in zip(due, outputs, strict=False)),
        reference=tuple(_whole(o, t, dtype) for o, t in zip(due, references, strict=False)),
        dtype=parts,
        eps=epsilon(parts) if is_float(parts) else 0.0,
        tf32=tf32,
    )
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return next((claim for claim in task.contract(evidence) if not claim.holds), None)
    except (RuntimeError, ValueError, IndexError, ArithmeticError) as error:
        # What was returned is such that a claim cannot even be computed, as with NaN.
        line = f"{type(error).__name__}: {error}".splitlines()[0]
        return Claim(f"{_COMPUTED} ({line})", math.nan, 0.0)


def cannot_be_computed(claim: Claim) -> bool:
    """Whether the claim stands for those that raised an error."""
    return claim.name.startswith(_COMPUTED)


def said(claim: Claim) -> str:
    """The broken claim in words."""
    return f"{claim.name}: {float(claim.value):.3g}, where at most {claim.limit:.3g} is right"


def _whole(spec: Output, tensor: torch.Tensor, working: str) -> torch.Tensor:
    """A complex output put together from its parts."""
    if not spec.dtype_at(working).startswith("complex"):
        return tensor
    wide = tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.to(torch.float64)
    return torch.view_as_complex(wide.contiguous())
