"""Integer arithmetic as C and the GPU have it: wrapping, truncating, never raising."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton.runtime.interpreter import TensorHandle

from kerneltruth.runner.interpreter.handles import Handle, make, truth
from kerneltruth.runner.interpreter.numbers import Array

IntegerOperation = Callable[[Array, Array], Array]


def _unsigned(data: Array) -> Array:
    return data if data.dtype == np.bool_ else data.view(f"uint{data.itemsize * 8}")


def _signed(data: Array) -> Array:
    return data if data.dtype == np.bool_ else data.view(f"int{data.itemsize * 8}")


def _as_is(data: Array) -> Array:
    return data


def _binary(
    operation: IntegerOperation, view: Callable[[Array], Array] = _as_is
) -> Callable[..., Handle]:
    def method(self: Any, lhs: Handle, rhs: Handle) -> Handle:
        result = operation(view(lhs.data), view(rhs.data))
        if result.dtype != lhs.data.dtype:
            result = result.view(lhs.data.dtype)
        return make(result, lhs.dtype.scalar)

    return method


def _compare(operation: IntegerOperation, view: Callable[[Array], Array]) -> Callable[..., Handle]:
    def method(self: Any, lhs: Handle, rhs: Handle) -> Handle:
        return truth(operation(view(lhs.data), view(rhs.data)))

    return method


def _one_bit(for_bits: IntegerOperation, for_words: IntegerOperation) -> IntegerOperation:
    # One-bit integers wrap modulo 2; NumPy's bool would count or refuse instead.
    def operation(a: Array, b: Array) -> Array:
        return (for_bits if a.dtype == np.bool_ else for_words)(a, b)

    return operation


def quotient(a: Array, b: Array) -> Array:
    """C's a / b; where b is 0, all bits set, as the GPU's division gives."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    floor = a // safe
    if a.dtype.kind == "i":
        floor = floor + ((floor * safe != a) & ((a < 0) != (safe < 0))).astype(a.dtype)
    all_ones = np.zeros((), a.dtype) if a.dtype == np.bool_ else ~np.zeros((), a.dtype)
    return np.where(zero, all_ones, floor)


def remainder(a: Array, b: Array) -> Array:
    """C's a % b; where b is 0, a."""
    zero = b == 0
    return np.where(zero, a, np.fmod(a, np.where(zero, b.dtype.type(1), b)))


def high_product(a: Array, b: Array) -> Array:
    """Return the upper half of the product of two unsigned words."""
    bits = a.itemsize * 8
    if bits < 64:
        wide = np.uint64
        return ((a.astype(wide) * b.astype(wide)) >> np.uint64(bits)).astype(a.dtype)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & low, a >> half, b & low, b >> half
    first = a_low * b_high
    second = a_high * b_low
    carry = ((a_low * b_low) >> half) + (first & low) + (second & low)
    return np.asarray(a_high * b_high + (first >> half) + (second >> half) + (carry >> half))


def _iabs(self: Any, arg: Handle) -> Handle:
    return TensorHandle(np.abs(arg.data), arg.dtype.scalar)


_COMPARISONS: dict[str, IntegerOperation] = {
    "LE": np.less_equal,
    "LT": np.less,
    "GE": np.greater_equal,
    "GT": np.greater,
}

METHODS: dict[str, Callable[..., Any]] = {
    "create_add": _binary(_one_bit(np.bitwise_xor, np.add)),
    "create_sub": _binary(_one_bit(np.bitwise_xor, np.subtract)),
    "create_mul": _binary(_one_bit(np.bitwise_and, np.multiply)),
    "create_sdiv": _binary(quotient, _signed),
    "create_udiv": _binary(quotient, _unsigned),
    "create_srem": _binary(remainder, _signed),
    "create_urem": _binary(remainder, _unsigned),
    "create_shl": _binary(np.left_shift),
    "create_lshr": _binary(np.right_shift, _unsigned),
    "create_ashr": _binary(np.right_shift, _signed),
    "create_and": _binary(np.bitwise_and),
    "create_or": _binary(np.bitwise_or),
    "create_xor": _binary(np.bitwise_xor),
    "create_minsi": _binary(np.minimum, _signed),
    "create_minui": _binary(np.minimum, _unsigned),
    "create_maxsi": _binary(np.maximum, _signed),
    "create_maxui": _binary(np.maximum, _unsigned),
    "create_icmpEQ": _compare(np.equal, _as_is),
    "create_icmpNE": _compare(np.not_equal, _as_is),
    "create_umulhi": _binary(high_product, _unsigned),
    "create_iabs": _iabs,
    **{f"create_icmpS{k}": _compare(op, _signed) for k, op in _COMPARISONS.items()},
    **{f"create_icmpU{k}": _compare(op, _unsigned) for k, op in _COMPARISONS.items()},
}
