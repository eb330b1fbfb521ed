"""How the compiler reads Python's control flow, for kernels that Python itself runs."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle, interpreter_semantic

Value = Any
_FIRST_64_BIT = 2**31


class AmbiguousTruth(ValueError):
    """A block of several elements stands where one truth value is needed."""


def is_tensor(value: Value) -> bool:
    """Return whether `value` is a run-time value of the kernel."""
    return isinstance(value, tl.core.tensor)


def constant(value: Value) -> Value:
    """`x.value`: constants come to the kernel bare here, wrapped when compiled."""
    return value.value if hasattr(value, "value") else value


def assigned(value: Value) -> Value:
    """Return what a variable holds after `x = value`: numbers become run-time scalars."""
    if isinstance(value, tl.constexpr):
        value = value.value
    if isinstance(value, (bool, int, float)):
        return interpreter_semantic.to_tensor(value, False)
    if type(value) is tuple:
        return tuple(assigned(item) for item in value)
    return value


def truth(value: Value) -> bool:
    """Evaluate the condition of `if` and `while`."""
    if isinstance(value, tl.condition):
        value = value.condition
    if is_tensor(value):
        if value.handle.data.size != 1:
            raise AmbiguousTruth(
                f"a block of shape {[int(n) for n in value.shape]} stands where one truth value "
                "is needed"
            )
        return bool(value.handle.data.reshape(-1)[0])
    return bool(value)


def _logical(name: str, stop: bool, operands: tuple[Callable[[], Value], ...]) -> Value:
    # Constants end the evaluation early, run-time values never do: that is what is compiled.
    kept: Value = None
    value: Value = None
    for operand in operands:
        value = operand()
        if not is_tensor(value):
            if bool(value) is stop:
                return value
            continue
        if not value.dtype.is_int1():
            value = interpreter_semantic.cast(value, tl.int1)
        kept = value if kept is None else getattr(interpreter_semantic, name)(kept, value)
    return value if kept is None else kept


def logical_and(*operands: Callable[[], Value]) -> Value:
    """`a and b and ...`."""
    return _logical("and_", False, operands)


def logical_or(*operands: Callable[[], Value]) -> Value:
    """`a or b or ...`."""
    return _logical("or_", True, operands)


def chained(operators: tuple[str, ...], first: Value, *others: Callable[[], Value]) -> Value:
    """`a < b <= c ...`: a conjunction in which each operand is evaluated once at most."""
    left = first

    def link(name: str, operand: Callable[[], Value]) -> Callable[[], Value]:
        def compare() -> Value:
            nonlocal left
            before, left = left, operand()
            return getattr(operator, name)(before, left)

        return compare

    return logical_and(*(link(*pair) for pair in zip(operators, others, strict=True)))


def logical_not(value: Value) -> Value:
    """`not a`."""
    if is_tensor(value):
        return interpreter_semantic.not_(interpreter_semantic.cast(value, tl.int1))
    return not value


def _extreme(name: str, python: Callable[..., Value], values: tuple[Value, ...]) -> Value:
    if not any(is_tensor(v) for v in values):
        return python(*(constant(v) for v in values))
    result = values[0]
    for value in values[1:]:
        result = getattr(interpreter_semantic, name)(
            interpreter_semantic.to_tensor(result),
            interpreter_semantic.to_tensor(value),
            tl.PropagateNan.NONE,
        )
    return result


def minimum(*values: Value) -> Value:
    """Python's `min` inside a kernel."""
    return _extreme("minimum", min, values)


def maximum(*values: Value) -> Value:
    """Python's `max` inside a kernel."""
    return _extreme("maximum", max, values)


def _scalar(value: int, ty: Any) -> Value:
    data = np.array([value], dtype=np.int64 if ty.int_bitwidth == 64 else np.int32)
    return tl.core.tensor(TensorHandle(data.view(_unsigned_or_signed(data, ty)), ty), ty)


def _unsigned_or_signed(data: Any, ty: Any) -> str:
    return f"{'int' if ty.is_int_signed() else 'uint'}{data.itemsize * 8}"


def _loop_type(bounds: list[Value]) -> Any:
    ty = tl.int32
    for bound in bounds:
        if is_tensor(bound):
            other = bound.dtype
        else:
            other = tl.int32 if -_FIRST_64_BIT <= bound < _FIRST_64_BIT else tl.int64
        ty = interpreter_semantic.integer_promote_impl(ty, other)
    return ty


def dynamic_range(
    start: Value, stop: Value = None, step: Value = None, **_: Any
) -> Iterator[Value]:
    """`range` and `tl.range`: the loop variable is a run-time integer scalar."""
    if stop is None:
        start, stop = 0, start
    bounds = [constant(b) for b in (start, stop, 1 if step is None else step)]
    ty = _loop_type(bounds)
    first, last, stride = (int(b.__index__()) for b in bounds)
    return (_scalar(i, ty) for i in builtins.range(first, last, stride))


def static_range(start: Value, stop: Value = None, step: Value = None, **_: Any) -> range:
    """`tl.static_range`: unrolled, so the loop variable is a constant."""
    if stop is None:
        start, stop = 0, start
    bounds = (constant(b) for b in (start, stop, 1 if step is None else step))
    return builtins.range(*(int(b.__index__()) for b in bounds))


def loop(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the iterable of a `for`, whose call is `function(*args, **kwargs)`."""
    if function is builtins.range:
        return dynamic_range(*args, **kwargs)
    return function(*args, **kwargs)
