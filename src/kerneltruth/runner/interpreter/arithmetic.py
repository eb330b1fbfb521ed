"""Float arithmetic, rounded to the operands' type after every operation, and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from kerneltruth.runner.interpreter.handles import Handle, make, truth, values
from kerneltruth.runner.interpreter.numbers import Array

ArrayOperation = Callable[..., Array]


def _binary(operation: ArrayOperation) -> Callable[..., Handle]:
    def method(self: Any, lhs: Handle, rhs: Handle) -> Handle:
        return make(operation(values(lhs), values(rhs)), lhs.dtype.scalar)

    return method


def _unary(operation: ArrayOperation) -> Callable[..., Handle]:
    def method(self: Any, arg: Handle) -> Handle:
        return make(operation(values(arg)), arg.dtype.scalar)

    return method


def _ordered(operation: ArrayOperation) -> Callable[..., Handle]:
    def method(self: Any, lhs: Handle, rhs: Handle) -> Handle:
        return truth(operation(values(lhs), values(rhs)))

    return method


def _unordered(opposite: ArrayOperation) -> Callable[..., Handle]:
    def method(self: Any, lhs: Handle, rhs: Handle) -> Handle:
        return truth(~opposite(values(lhs), values(rhs)))

    return method


def _less_or_greater(a: Array, b: Array) -> Array:
    return np.asarray((a < b) | (a > b))


def fused(x: Array, y: Array, z: Array) -> Array:
    """X * y + z with one rounding; fp64, which NumPy cannot fuse, is rounded twice."""
    wide = np.float64
    return np.asarray(x.astype(wide) * y.astype(wide) + z.astype(wide))


def _fma(self: Any, x: Handle, y: Handle, z: Handle) -> Handle:
    return make(fused(values(x), values(y), values(z)), z.dtype.scalar)


def _clamp(self: Any, arg: Handle, low: Handle, high: Handle, propagate_nans: Any) -> Handle:
    x, lower, upper = values(arg), values(low), values(high)
    if propagate_nans == tl.PropagateNan.ALL:
        clamped = np.minimum(np.maximum(x, lower), upper)
    else:
        clamped = np.fmin(np.fmax(x, lower), upper)
    return make(clamped, arg.dtype.scalar)


def _select(self: Any, condition: Handle, lhs: Handle, rhs: Handle) -> Handle:
    # `atomic_min` on floats selects between signed and unsigned words of the same bits.
    other = rhs.data if rhs.data.dtype == lhs.data.dtype else rhs.data.view(lhs.data.dtype)
    return TensorHandle(np.where(condition.data, lhs.data, other), lhs.dtype.scalar)


def _fabs(self: Any, arg: Handle) -> Handle:
    bits = arg.data.view(f"uint{arg.data.itemsize * 8}")
    mask = bits.dtype.type((1 << (bits.itemsize * 8 - 1)) - 1)
    return TensorHandle((bits & mask).view(arg.data.dtype), arg.dtype.scalar)


def _rsqrt(x: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(x.astype(np.float64)))


def _erf(x: Array) -> Array:
    from kerneltruth.runner.interpreter.special import erf

    return erf(x)


METHODS: dict[str, Callable[..., Any]] = {
    "create_fadd": _binary(np.add),
    "create_fsub": _binary(np.subtract),
    "create_fmul": _binary(np.multiply),
    "create_fdiv": _binary(np.divide),
    "create_precise_divf": _binary(np.divide),
    "create_frem": _binary(np.fmod),
    "create_fneg": _unary(np.negative),
    # maxnum and minnum ignore a NaN operand, maximum and minimum hand it on.
    "create_minimumf": _binary(np.minimum),
    "create_minnumf": _binary(np.fmin),
    "create_maximumf": _binary(np.maximum),
    "create_maxnumf": _binary(np.fmax),
    "create_fcmpOLT": _ordered(np.less),
    "create_fcmpOGT": _ordered(np.greater),
    "create_fcmpOLE": _ordered(np.less_equal),
    "create_fcmpOGE": _ordered(np.greater_equal),
    "create_fcmpOEQ": _ordered(np.equal),
    "create_fcmpONE": _ordered(_less_or_greater),
    "create_fcmpULT": _unordered(np.greater_equal),
    "create_fcmpUGT": _unordered(np.less_equal),
    "create_fcmpULE": _unordered(np.greater),
    "create_fcmpUGE": _unordered(np.less),
    "create_fcmpUEQ": _unordered(_less_or_greater),
    "create_fcmpUNE": _ordered(np.not_equal),
    "create_clampf": _clamp,
    "create_select": _select,
    "create_fma": _fma,
    "create_fabs": _fabs,
    "create_cos": _unary(np.cos),
    "create_sin": _unary(np.sin),
    "create_exp": _unary(np.exp),
    "create_exp2": _unary(np.exp2),
    "create_log": _unary(np.log),
    "create_log2": _unary(np.log2),
    "create_sqrt": _unary(np.sqrt),
    "create_precise_sqrt": _unary(np.sqrt),
    "create_rsqrt": _unary(_rsqrt),
    "create_floor": _unary(np.floor),
    "create_ceil": _unary(np.ceil),
    "create_erf": _unary(_erf),
}
