"""Conversions between types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton._C.libtriton import ir
from triton.runtime.interpreter import TensorHandle

from kerneltruth.runner.interpreter.handles import Handle, Type, make, storage, values
from kerneltruth.runner.interpreter.numbers import STORAGE, Array, toward_zero


def saturate(numbers: Array, target: np.dtype[Any]) -> Array:
    """Float to integer toward zero; out of range clamps, as the GPU's `cvt` does.

    NaN gives 0 in up to 32 bits and the lowest (signed) or highest (unsigned) value in 64.
    """
    info = np.iinfo(target)
    whole = np.trunc(numbers.astype(np.float64, copy=False))
    high = whole >= float(info.max)
    low = whole <= float(info.min)
    result = np.where(high | low | np.isnan(whole), 0.0, whole).astype(target)
    result = np.where(high, target.type(info.max), np.where(low, target.type(info.min), result))
    if info.bits == 64:
        odd = info.min if target.kind == "i" else 1 << 63
        result = np.where(np.isnan(whole), target.type(odd), result)
    return result


def _float_to_integer(self: Any, src: Handle, dst_type: Type) -> Handle:
    target = storage(dst_type)
    numbers = values(src)
    if target.itemsize == 1:
        # There is no 8-bit conversion: the GPU converts to 16 bits and keeps the low 8.
        narrow = saturate(numbers, np.dtype(f"{target.kind}2")).astype(target)
        return TensorHandle(narrow, dst_type.scalar)
    return TensorHandle(saturate(numbers, target), dst_type.scalar)


def _convert(self: Any, src: Handle, dst_type: Type) -> Handle:
    return make(values(src), dst_type.scalar)


def _integer_cast(self: Any, src: Handle, dst_type: Type, is_signed: bool) -> Handle:
    return TensorHandle(src.data.astype(storage(dst_type)), dst_type.scalar)


def _float_to_float(self: Any, src: Handle, dst_type: Type, rounding: Any) -> Handle:
    ty = dst_type.scalar
    if rounding == ir.ROUNDING_MODE.RTZ:
        return TensorHandle(toward_zero(values(src), ty.name).view(STORAGE[ty.name]), ty)
    return make(values(src), ty)


def _bitcast(self: Any, src: Handle, dst_type: Type) -> Handle:
    return TensorHandle(src.data.view(storage(dst_type)), dst_type.scalar)


METHODS: dict[str, Callable[..., Any]] = {
    "create_si_to_fp": _convert,
    "create_ui_to_fp": _convert,
    "create_fp_ext": _convert,
    "create_fp_trunc": _convert,
    "create_fp_to_si": _float_to_integer,
    "create_fp_to_ui": _float_to_integer,
    "create_int_cast": _integer_cast,
    "create_fp_to_fp": _float_to_float,
    "create_bitcast": _bitcast,
    "create_int_to_ptr": _bitcast,
    "create_ptr_to_int": _bitcast,
}
