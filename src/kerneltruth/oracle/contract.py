"""Contracts: whether what was returned keeps the claims of a task whose answer is not unique."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import torch

from kerneltruth.oracle.dtypes import epsilon, is_float
from kerneltruth.oracle.reference import widened
from kerneltruth.tasks.arguments import PARTS
from kerneltruth.tasks.model import OUT
from kerneltruth.tasks.spec import Claim, Evidence, Output, Task

_COMPUTED = "the claims can be computed"


def broken_claims(  # noqa: PLR0913 - all that a claim may speak of
    task: Task,
    due: tuple[Output, ...],
    dtype: str,
    inputs: Mapping[str, torch.Tensor | None],
    scalars: Mapping[str, Any],
    outputs: tuple[torch.Tensor, ...],
    references: tuple[torch.Tensor, ...],
    *,
    tf32: bool = True,
    most: int | None = None,
) -> tuple[Claim, ...]:
    """The claims of the task's contract that the outputs break, at most the first so many.

    Complex outputs and references come as real and imaginary parts (see `reference.real_parts`).
    """
    if task.contract is None:
        return ()
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
    broken: list[Claim] = []
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for claim in islice((c for c in task.contract(evidence) if not c.holds), most):
                broken.append(claim)
    except (RuntimeError, ValueError, IndexError, ArithmeticError) as error:
        # What was returned is such that a claim cannot even be computed, as with NaN.
        line = f"{type(error).__name__}: {error}".splitlines()[0]
        broken = broken or [Claim(f"{_COMPUTED} ({line})", math.nan, 0.0)]
    return tuple(broken)


def cannot_be_computed(claim: Claim) -> bool:
    """Whether the claim stands for those that raised an error."""
    return claim.name.startswith(_COMPUTED)


def said(claims: Sequence[Claim]) -> str:
    """The broken claims in words."""
    return "; ".join(
        f"{c.name}: {float(c.value):.3g}, where at most {c.limit:.3g} is right" for c in claims
    )


def _whole(spec: Output, tensor: torch.Tensor, working: str) -> torch.Tensor:
    """A complex output put together from its parts."""
    if not spec.dtype_at(working).startswith("complex"):
        return tensor
    wide = tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.to(torch.float64)
    return torch.view_as_complex(wide.contiguous())
