"""The float64 evaluation of a task, in the judge only."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from kerneltruth.tasks.spec import Task

Tensors = Mapping[str, torch.Tensor | None]
Scalars = Mapping[str, Any]


def cast(tensors: Tensors, dtype: torch.dtype) -> dict[str, torch.Tensor | None]:
    """Fresh tensors with every real input in `dtype`, and complex ones in what is made of it.

    Other dtypes are kept.
    """
    return {
        name: None if t is None else widened(t, dtype, copy=True) for name, t in tensors.items()
    }


def widened(t: torch.Tensor, dtype: torch.dtype, *, copy: bool = False) -> torch.Tensor:
    """The tensor in `dtype`, a complex one in what is made of it; one of integers as it is."""
    if t.is_complex():
        wide = torch.complex128 if dtype == torch.float64 else torch.complex64
        return t.to(wide, copy=copy)
    if t.is_floating_point():
        return t.to(dtype, copy=copy)
    return t.clone() if copy else t


@contextmanager
def quietly() -> Iterator[None]:
    """No gradients and no warnings: entered once around many evaluations."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def outputs_of(
    task: Task,
    tensors: Tensors,
    scalars: Scalars,
    *,
    formula: Callable[..., Any] | None = None,
) -> tuple[torch.Tensor, ...]:
    """Call the reference (or another formula for the same operator) and flatten its outputs.

    To be called within `quietly`. A complex output comes as its real and imaginary parts, in a
    last dim of 2.

    Raises:
        Exception: whatever torch raises where the operator does not accept the arguments.
    """
    function = formula or task.reference
    result = function(**task.keywords(tensors, scalars, function))
    outputs = result if isinstance(result, tuple | list) else (result,)
    return tuple(real_parts(torch.as_tensor(o)) for o in outputs)


def real_parts(output: torch.Tensor) -> torch.Tensor:
    """The tensor; a complex one as its real and imaginary parts, which are compared each."""
    return torch.view_as_real(output.resolve_conj()) if output.is_complex() else output


def reference(task: Task, tensors: Tensors, scalars: Scalars) -> tuple[torch.Tensor, ...]:
    """What the operator gives in float64 on the dtype-rounded inputs."""
    with quietly():
        return outputs_of(task, cast(tensors, torch.float64), scalars)
