"""Reductions and scans as trees over whole blocks, rounding at every node as the GPU does.

The GPU's tree depends on the layout; this one combines neighbours, which keeps the operands'
order, so any associative function gives its one result. A combine function runs once per level
on blocks; only one that branches on its arguments runs per element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle, interpreter_semantic

from kerneltruth.runner.interpreter.control import AmbiguousTruth
from kerneltruth.runner.interpreter.handles import make, values
from kerneltruth.runner.interpreter.numbers import NARROW, Array, decode, encode

BlockTensor = Any
Blocks = tuple[Array, ...]
_STANDARD = tl.standard


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def tensor(data: Array, ty: Any) -> BlockTensor:
    """Make a tensor of scalar type `ty`; an array without dimensions gives a scalar."""
    if data.ndim == 0:
        return tl.core.tensor(TensorHandle(data.reshape(1), ty), ty)
    return tl.core.tensor(TensorHandle(data, ty), tl.block_type(ty, list(data.shape)))


def _combined(
    function: Any, left: Iterable[BlockTensor], right: Iterable[BlockTensor]
) -> list[BlockTensor]:
    result = function(*left, *right)
    return list(result) if isinstance(result, (tuple, list, tl.tuple)) else [result]


def _apply(function: Any, types: list[Any], left: Blocks, right: Blocks) -> Blocks:
    results = _combined(
        function,
        [tensor(d, ty) for d, ty in zip(left, types, strict=True)],
        [tensor(d, ty) for d, ty in zip(right, types, strict=True)],
    )
    cast = [
        interpreter_semantic.cast(interpreter_semantic.to_tensor(r), ty)
        for r, ty in zip(results, types, strict=True)
    ]
    shape = left[0].shape
    return tuple(np.broadcast_to(r.handle.data, shape or (1,)).reshape(shape) for r in cast)


def _tree(function: Any, types: list[Any], blocks: Blocks) -> Blocks:
    while (count := blocks[0].shape[0]) > 1:
        even = count // 2 * 2
        merged = _apply(
            function,
            types,
            tuple(b[0:even:2] for b in blocks),
            tuple(b[1:even:2] for b in blocks),
        )
        if even < count:
            merged = tuple(
                np.concatenate([m, b[even:]]) for m, b in zip(merged, blocks, strict=True)
            )
        blocks = merged
    return tuple(b[0] for b in blocks)


def _by_element(function: Any, types: list[Any], blocks: Blocks, *, running: bool) -> Blocks:
    """Left to right with scalars, for functions that branch on their arguments."""
    count, rest = blocks[0].shape[0], blocks[0].shape[1:]
    outs = tuple(np.array(b) for b in blocks)
    for index in np.ndindex(rest):
        total = tuple(b[(0, *index)].reshape(()) for b in blocks)
        for i in range(1, count):
            total = _apply(
                function, types, total, tuple(b[(i, *index)].reshape(()) for b in blocks)
            )
            for out, value in zip(outs, total, strict=True):
                out[(i, *index)] = value
    return outs if running else tuple(out[-1] for out in outs)


def _steps(function: Any, types: list[Any], blocks: Blocks) -> Blocks:
    """Scan inclusively in log2(n) steps, each combining with the element `shift` before."""
    count = blocks[0].shape[0]
    shift = 1
    while shift < count:
        earlier = tuple(np.concatenate([b[:shift], b[:-shift]]) for b in blocks)
        merged = _apply(function, types, earlier, blocks)
        blocks = tuple(
            np.concatenate([b[:shift], m[shift:]]) for b, m in zip(blocks, merged, strict=True)
        )
        shift *= 2
    return blocks


def _rounded(operation: Callable[..., Array], ty: Any, left: Array, right: Array) -> Array:
    if ty.name in NARROW:
        return encode(operation(decode(left, ty.name), decode(right, ty.name)), ty.name)
    return operation(left, right)


_FLOAT_OPERATIONS: dict[Any, Any] = {
    _STANDARD._sum_combine: np.add,
    _STANDARD._prod_combine: np.multiply,
}
_EXACT_FLOAT: dict[Any, Any] = {
    _STANDARD._elementwise_max: np.fmax,
    _STANDARD._elementwise_min: np.fmin,
}
_INTEGER: dict[Any, Any] = {
    _STANDARD._sum_combine: np.add,
    _STANDARD._elementwise_max: np.maximum,
    _STANDARD._elementwise_min: np.minimum,
    _STANDARD._xor_combine: np.bitwise_xor,
    _STANDARD._prod_combine: np.multiply,
    _STANDARD._or_combine: np.bitwise_or,
}
_FIRST_EXTREME: dict[Any, Any] = {
    _STANDARD._argmax_combine_tie_break_left: np.argmax,
    _STANDARD._argmin_combine_tie_break_left: np.argmin,
}


def _float_tree(operation: Callable[..., Array], ty: Any, data: Array) -> Array:
    while (count := data.shape[0]) > 1:
        half = count // 2
        merged = _rounded(operation, ty, data[:half], data[half : 2 * half])
        data = merged if count % 2 == 0 else np.concatenate([merged, data[2 * half :]])
    return np.asarray(data[0])


def _shortcut_reduce(function: Any, types: list[Any], blocks: Blocks) -> Blocks | None:
    ty, data = types[0], blocks[0]
    if len(blocks) == 2 and function in _FIRST_EXTREME:
        numbers = values(TensorHandle(data, ty))
        if numbers.dtype.kind == "f" and np.isnan(numbers).any():
            return None
        where = _FIRST_EXTREME[function](numbers, axis=0)[None]
        return tuple(np.take_along_axis(b, where, axis=0)[0] for b in blocks)
    if len(blocks) != 1:
        return None
    if ty.is_floating():
        if function in _EXACT_FLOAT:
            numbers = values(TensorHandle(data, ty))
            return (make(np.asarray(_EXACT_FLOAT[function].reduce(numbers, axis=0)), ty).data,)
        if function in _FLOAT_OPERATIONS:
            return (_float_tree(_FLOAT_OPERATIONS[function], ty, data),)
    elif function in _INTEGER and data.dtype != np.bool_:
        return (np.asarray(_INTEGER[function].reduce(data, axis=0, dtype=data.dtype)),)
    return None


def _shortcut_scan(function: Any, types: list[Any], blocks: Blocks) -> Blocks | None:
    ty, data = types[0], blocks[0]
    if len(blocks) != 1 or data.dtype == np.bool_:
        return None
    if not ty.is_floating():
        if function not in _INTEGER:
            return None
        return (_INTEGER[function].accumulate(data, axis=0, dtype=data.dtype),)
    if function not in _FLOAT_OPERATIONS:
        return None
    shift = 1
    while shift < data.shape[0]:
        merged = _rounded(_FLOAT_OPERATIONS[function], ty, data[:-shift], data[shift:])
        data = np.concatenate([data[:shift], merged])
        shift *= 2
    return (data,)


def _unpack(inputs: Any) -> tuple[list[BlockTensor], bool]:
    single = isinstance(inputs, tl.core.tensor)
    return ([inputs] if single else list(inputs)), single


def _axis(axis: Any, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for a tensor of {rank} dimensions")
    return int(axis) % rank


def reduce(
    input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any
) -> BlockTensor | tuple[BlockTensor, ...]:
    """`tl.reduce`."""
    tensors, single = _unpack(input)
    axis, keep_dims = _plain(axis), _plain(keep_dims)
    types = [t.type.scalar for t in tensors]
    rank = len(tensors[0].shape)
    if axis is None:
        blocks = tuple(t.handle.data.reshape(-1) for t in tensors)
    else:
        axis = _axis(axis, rank)
        blocks = tuple(np.moveaxis(t.handle.data, axis, 0) for t in tensors)
    results = _shortcut_reduce(combine_fn, types, blocks)
    if results is None:
        try:
            results = _tree(combine_fn, types, blocks)
        except AmbiguousTruth:
            results = _by_element(combine_fn, types, blocks, running=False)
    if keep_dims:
        results = tuple(
            r.reshape((1,) * rank) if axis is None else np.expand_dims(r, axis) for r in results
        )
    made = tuple(tensor(np.asarray(r), ty) for r, ty in zip(results, types, strict=True))
    return made[0] if single else made


def associative_scan(
    input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any
) -> BlockTensor | tuple[BlockTensor, ...]:
    """`tl.associative_scan`."""
    tensors, single = _unpack(input)
    axis, reverse = _axis(_plain(axis), len(tensors[0].shape)), _plain(reverse)
    types = [t.type.scalar for t in tensors]
    blocks = tuple(np.moveaxis(t.handle.data, axis, 0) for t in tensors)
    if reverse:
        blocks = tuple(b[::-1] for b in blocks)
    results = _shortcut_scan(combine_fn, types, blocks)
    if results is None:
        try:
            results = _steps(combine_fn, types, blocks)
        except AmbiguousTruth:
            results = _by_element(combine_fn, types, blocks, running=True)
    if reverse:
        results = tuple(r[::-1] for r in results)
    made = tuple(
        tensor(np.ascontiguousarray(np.moveaxis(r, 0, axis)), ty)
        for r, ty in zip(results, types, strict=True)
    )
    return made[0] if single else made
