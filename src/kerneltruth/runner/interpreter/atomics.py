"""Atomic operations, lane after lane, and the wait that can never end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import interpreter as native
from triton._C.libtriton import ir
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from kerneltruth.runner.interpreter import bounds
from kerneltruth.runner.interpreter.handles import Handle, make, values
from kerneltruth.runner.interpreter.memory import descriptor_pointers
from kerneltruth.runner.interpreter.numbers import Array
from kerneltruth.runner.interpreter.waiting import POLLS
from kerneltruth.runner.unsupported import UnsupportedError

_NATIVE_ORDER = InterpreterBuilder.ir_sem_to_interpreter_sem
_NATIVE_OPERATION = InterpreterBuilder.ir_rmw_op_to_interpreter_rmw_op


def _turns(pointers: Array) -> Iterator[Array]:
    """Index sets, in each of which every address occurs once, in lane order."""
    order = np.argsort(pointers, kind="stable")
    ordered = pointers[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    starts = np.flatnonzero(first)
    turn = np.arange(len(ordered)) - np.repeat(starts, np.diff([*starts, len(ordered)]))
    for k in range(int(turn.max(initial=-1)) + 1):
        yield order[turn == k]


def _in_turn(
    pointers: Array, mask: Array, bits: np.dtype[Any], update: Callable[[Array, Array], Array]
) -> Array:
    """Apply `update(old bits, lanes)` to memory lane by lane; returns what each lane saw."""
    lanes = np.flatnonzero(np.broadcast_to(mask, pointers.shape).reshape(-1))
    flat = np.ascontiguousarray(pointers).reshape(-1)
    result = np.zeros(flat.shape, dtype=bits)
    for turn in _turns(flat[lanes]):
        chosen = lanes[turn]
        ones = np.ones(chosen.shape, dtype=bool)
        old = native.load(flat[chosen], ones, np.zeros(chosen.shape, dtype=bits), bits)
        result[chosen] = old
        native.store(flat[chosen], np.ascontiguousarray(update(old, chosen)), ones)
    return result.reshape(pointers.shape)


def _add_16_bits(ptr: Handle, val: Handle, mask: Handle) -> Handle:
    ty = val.dtype.scalar
    addends = np.broadcast_to(values(val), ptr.data.shape).reshape(-1)

    def update(old: Array, lanes: Array) -> Array:
        total: Array = make(values(TensorHandle(old, ty)) + addends[lanes], ty).data
        return total

    return TensorHandle(_in_turn(ptr.data, mask.data, val.data.dtype, update), ty)


def _exchange_16_bits(ptr: Handle, val: Handle, mask: Handle) -> Handle:
    new = np.broadcast_to(val.data, ptr.data.shape).reshape(-1)
    old = _in_turn(ptr.data, mask.data, val.data.dtype, lambda _, lanes: new[lanes])
    return TensorHandle(old, val.dtype.scalar)


def _kept(self: Any, ptr: Handle, mask: Handle, size: int) -> Handle:
    """Return the mask without lanes whose memory does not exist."""
    on = np.broadcast_to(mask.data, ptr.data.shape)
    kept = bounds.lanes(ptr.data, on, size, self.grid_idx, write=True)
    return mask if kept is None else TensorHandle(kept, tl.int1)


def _rmw(
    self: Any, operation: Any, ptr: Handle, val: Handle, mask: Handle, sem: Any, scope: Any
) -> Handle:
    mask = _kept(self, ptr, mask, val.data.itemsize)
    if val.data.dtype.itemsize == 2:
        if operation == ir.ATOMIC_OP.FADD:
            return _add_16_bits(ptr, val, mask)
        if operation == ir.ATOMIC_OP.XCHG:
            return _exchange_16_bits(ptr, val, mask)
        raise UnsupportedError(f"atomic {operation} on {val.dtype} in the interpreter")
    shape = ptr.data.shape
    data = np.ascontiguousarray(np.broadcast_to(val.data, shape))
    # Exchanging floats is exchanging their bits; the interpreter only knows integers there.
    exchange_float = operation == ir.ATOMIC_OP.XCHG and data.dtype.kind == "f"
    if exchange_float:
        data = data.view(f"int{data.itemsize * 8}")
    old = native.atomic_rmw(
        _NATIVE_OPERATION[operation],
        np.ascontiguousarray(ptr.data),
        data,
        np.ascontiguousarray(np.broadcast_to(mask.data, shape)),
        _NATIVE_ORDER[sem],
    )
    POLLS.note(self.grid_idx, ptr.data, old)
    return TensorHandle(old.view(val.data.dtype), val.dtype.scalar)


def _cas(self: Any, ptr: Handle, cmp: Handle, val: Handle, sem: Any, scope: Any) -> Handle:
    bits = np.dtype(f"uint{val.data.itemsize * 8}")
    shape = ptr.data.shape
    expected = np.broadcast_to(cmp.data.view(bits), shape).reshape(-1)
    new = np.broadcast_to(val.data.view(bits), shape).reshape(-1)

    def update(old: Array, lanes: Array) -> Array:
        return np.where(old == expected[lanes], new[lanes], old)

    everywhere = TensorHandle(np.ones(shape, dtype=bool), tl.int1)
    old = _in_turn(ptr.data, _kept(self, ptr, everywhere, bits.itemsize).data, bits, update)
    POLLS.note(self.grid_idx, ptr.data, old)
    return TensorHandle(old.view(val.data.dtype), cmp.dtype.scalar)


def _descriptor_reduce(self: Any, kind: Any, desc: Any, value: Handle, indices: Any) -> None:
    pointers, inside = descriptor_pointers(desc, indices)
    ty = value.dtype.scalar
    name = str(kind).rsplit(".", 1)[-1]
    if name == "ADD" and ty.is_floating():
        name = "FADD"
    elif name in ("MIN", "MAX"):
        if ty.is_floating():
            raise UnsupportedError(f"descriptor atomic {name} on {ty} in the interpreter")
        name = name if ty.is_int_signed() else "U" + name
    operation = getattr(ir.ATOMIC_OP, name)
    _rmw(self, operation, pointers, value, inside, ir.MEM_SEMANTIC.RELAXED, None)


def _inline_asm(self: Any, *_: Any) -> Handle:
    raise UnsupportedError("inline assembly does not run in the interpreter")


def _missing(self: Any, name: str) -> Any:
    """Whatever the interpreter's builder lacks is unsupported here, not the kernel's fault."""
    if name.startswith(("create_", "get_")):
        raise UnsupportedError(f"Triton's interpreter has no {name}")
    raise AttributeError(f"'InterpreterBuilder' object has no attribute {name!r}")


METHODS: dict[str, Callable[..., Any]] = {
    "create_atomic_rmw": _rmw,
    "create_atomic_cas": _cas,
    "create_descriptor_reduce": _descriptor_reduce,
    "create_inline_asm": _inline_asm,
    "__getattr__": _missing,
}
