"""Matrix products: exact products, accumulated in fp32 (fp64, int32) as on tensor cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton._C.libtriton import ir

from kerneltruth.runner.interpreter.handles import Handle, make, values
from kerneltruth.runner.interpreter.numbers import Array, decode
from kerneltruth.runner.interpreter.settings import dot_precision

# The low 13 bits of an fp32 number that TF32 has no place for.
_TF32_MASK = np.uint32(0xFFFFE000)
_E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=np.float32)


def _operand(handle: Handle, precision: Any) -> Array:
    numbers = values(handle)
    if numbers.dtype == np.float64:
        return numbers
    if numbers.dtype.kind in "iu":
        # Sums of 8-bit products are exact in float64, which has a fast product.
        return numbers.astype(np.float64)
    single = np.ascontiguousarray(numbers, dtype=np.float32)
    if (
        handle.dtype.scalar.name == "fp32"
        and precision == ir.INPUT_PRECISION.TF32
        and dot_precision() == "tf32"
    ):
        return (single.view(np.uint32) & _TF32_MASK).view(np.float32)
    return single


def _dot(
    self: Any, a: Handle, b: Handle, d: Handle, input_precision: Any, max_imprecise: Any
) -> Handle:
    product = np.matmul(_operand(a, input_precision), _operand(b, input_precision))
    ty = d.dtype.scalar
    if ty.is_int():
        total = product.astype(np.int64).astype(np.int32) + d.data
    else:
        total = product + values(d)
    return make(total, ty)


def _unpack(bits: Array, axis: int) -> Array:
    # Two 4-bit numbers per byte along `axis`, the lower half first.
    last = np.moveaxis(bits, axis, -1)
    codes = np.stack([last & 0xF, last >> 4], axis=-1).reshape((*last.shape[:-1], -1))
    magnitudes = _E2M1[codes & 7]
    return np.moveaxis(np.where(codes & 8, -magnitudes, magnitudes), -1, axis)


def _scaled(handle: Handle, scale: Handle | None, fmt: Any, k_axis: int, k_packed: bool) -> Array:
    if fmt == ir.ScaleDotElemTypeTY.E2M1:
        packed_axis = k_axis if k_packed else -3 - k_axis
        numbers = _unpack(handle.data.view(np.uint8), packed_axis)
    else:
        numbers = values(handle).astype(np.float32, copy=False)
    if scale is None:
        return numbers
    if scale.dtype.scalar.name == "fp8e4nv":
        factors = decode(scale.data, "fp8e4nv")
    else:
        exponent = scale.data.view(np.uint8)
        powers = np.ldexp(np.float32(1.0), exponent.astype(np.int32) - 127)
        factors = np.where(exponent == 255, np.float32(np.nan), powers)
    # One factor for each run of k elements; the scales of either operand run along k last.
    run = numbers.shape[k_axis] // factors.shape[-1]
    spread = np.repeat(factors, run, axis=-1)
    return np.asarray(numbers * (spread if k_axis == -1 else np.swapaxes(spread, -1, -2)))


def _dot_scaled(
    self: Any,
    lhs: Handle,
    lhs_scale: Handle | None,
    lhs_format: Any,
    rhs: Handle,
    rhs_scale: Handle | None,
    rhs_format: Any,
    *rest: Any,
) -> Handle:
    _fast_math, lhs_k_pack, rhs_k_pack, acc = rest
    a = _scaled(lhs, lhs_scale, lhs_format, -1, lhs_k_pack)
    b = _scaled(rhs, rhs_scale, rhs_format, -2, rhs_k_pack)
    return make(np.matmul(a, b) + values(acc), acc.dtype.scalar)


METHODS: dict[str, Callable[..., Any]] = {
    "create_dot": _dot,
    "create_dot_scaled": _dot_scaled,
}
