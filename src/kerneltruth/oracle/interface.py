"""The form of a returned tensor: its shape and dtype, separate from its values.

A result of another dtype, or of shape `(1,)` in place of `()`, is compared in the promised form,
so that its form never hides a wrong value. A result that cannot be brought into that form has no
values to compare, and is wrong by its form alone.
"""

from __future__ import annotations

import math

import torch

from kerneltruth.documents.records import Mismatch
from kerneltruth.documents.verdict import Failed, FailKind
from kerneltruth.oracle.dtypes import DTYPES
from kerneltruth.oracle.expectation import ExpectedOutput
from kerneltruth.oracle.reference import real_parts
from kerneltruth.runner.observation import TensorResult


def in_promised_form(
    result: TensorResult, want: ExpectedOutput
) -> tuple[torch.Tensor, tuple[Mismatch, ...]] | Failed:
    """The result in the promised form, and how its own form differs.

    A complex one comes as its real and imaginary parts (see `reference.real_parts`).
    """
    name = want.spec.name
    found: list[tuple[FailKind, str]] = []
    shape = tuple(result.shape)
    if shape != want.shape:
        found.append(("shape", f"shape {shape}; expected {want.shape}"))
        if not (math.prod(shape) == math.prod(want.shape) == 1 and () in (shape, want.shape)):
            return Failed(kind="shape", detail=found[0][1], output=name)
    if result.dtype != want.promised_dtype:
        detail = f"dtype {result.dtype}; expected {want.promised_dtype}"
        tensor = _converted(result, want) if result.dtype in DTYPES else None
        if tensor is None:
            return Failed(kind="dtype", detail=detail, output=name)
        if not (want.spec.may_be_complex and result.dtype.startswith("complex")):
            found.append(("dtype", detail))
    else:
        tensor = _tensor(result)
    tensor = real_parts(tensor.reshape(want.shape))
    return tensor, tuple(Mismatch(kind=k, detail=d, output=name) for k, d in found)


def tensor_of(result: TensorResult) -> torch.Tensor:
    """The result's logical elements as a CPU tensor; complex ones as their parts."""
    return real_parts(_tensor(result))


def _tensor(result: TensorResult) -> torch.Tensor:
    dtype = DTYPES[result.dtype]
    if not result.data:
        return torch.empty(result.shape, dtype=dtype)
    # What came alone lies in memory that torch can use as it is.
    data = result.data if isinstance(result.data, bytearray) else bytearray(result.data)
    return torch.frombuffer(data, dtype=dtype).reshape(result.shape)


def _converted(result: TensorResult, want: ExpectedOutput) -> torch.Tensor | None:
    """The result in the promised dtype; None where that cannot hold its values.

    Floating-point values are rounded, as the promised dtype would have them.
    """
    tensor, dtype = _tensor(result), DTYPES[want.promised_dtype]
    if tensor.is_complex() and not dtype.is_complex:
        if bool((tensor.imag != 0).any()):
            return None
        tensor = tensor.real
    if dtype.is_floating_point or dtype.is_complex:
        return tensor.to(dtype)
    converted = tensor.to(dtype)
    same = converted.to(torch.float64) == tensor.to(torch.float64)
    return converted if bool(same.all()) else None
