"""Loads with padding, scalar constants, shapes and tables: the rest of the builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import interpreter as native
from triton._C.libtriton import ir
from triton.runtime.interpreter import TensorHandle

from kerneltruth.runner.interpreter import bounds
from kerneltruth.runner.interpreter.handles import Handle, Type, make, storage
from kerneltruth.runner.interpreter.numbers import STORAGE, Array
from kerneltruth.runner.interpreter.waiting import POLLS


def padding_values(option: Any, shape: tuple[int, ...], ty: Type) -> Handle | None:
    """Return what a load puts where a block leaves its tensor; None for zeros."""
    if option is None or option == ir.PADDING_OPTION.PAD_ZERO:
        return None
    return make(np.full(shape, np.nan, dtype=np.float32), ty)


def _own(data: Array) -> Array:
    # The native functions want arrays of their own; a broadcast one may not be written to.
    return data if data.flags.writeable and data.flags.c_contiguous else data.copy()


def _load(
    self: Any,
    ptrs: Handle,
    mask: Handle | None,
    other: Handle | None,
    cache: Any,
    eviction: Any,
    volatile: Any,
) -> Handle:
    ty = ptrs.get_element_ty()
    kind = storage(ty)
    addresses = _own(ptrs.data)
    # Lanes that are masked off without `other` are undefined; the compilers leave 0 there.
    default = np.zeros(addresses.shape, dtype=kind) if other is None else _own(other.data)
    on = None if mask is None else _own(mask.data)
    performed = bounds.lanes(addresses, on, kind.itemsize, self.grid_idx, write=False)
    if on is None:
        on = np.ones(addresses.shape, dtype=bool)
    if performed is not None:
        # Nothing can be read there: NaN, and 0 where an index or a loop's bound may come of it.
        spoiled = b"\xff" if ty.scalar.is_floating() else b"\0"
        nothing = np.frombuffer(spoiled * kind.itemsize, dtype=kind)
        on, default = performed, np.where(on & ~performed, nothing, default)
    loaded = native.load(addresses, on, default, kind)
    if volatile or cache == ir.CACHE_MODIFIER.CV:
        POLLS.note(self.grid_idx, addresses, loaded)
    return TensorHandle(loaded, ty)


def _load_all(self: Any, ptrs: Handle, cache: Any, eviction: Any, volatile: Any) -> Handle:
    return _load(self, ptrs, None, None, cache, eviction, volatile)


def _store(
    self: Any, ptrs: Handle, value: Handle, mask: Handle | None, cache: Any, eviction: Any
) -> None:
    addresses, data = _own(ptrs.data), _own(value.data)
    on = None if mask is None else _own(mask.data)
    performed = bounds.lanes(addresses, on, data.itemsize, self.grid_idx, write=True)
    if performed is None:
        performed = np.ones(addresses.shape, dtype=bool) if on is None else on
    native.store(addresses, data, performed)


def _store_all(self: Any, ptrs: Handle, value: Handle, cache: Any, eviction: Any) -> None:
    _store(self, ptrs, value, None, cache, eviction)


def descriptor_pointers(desc: Any, offsets: list[Handle]) -> tuple[Handle, Handle]:
    """Return the addresses of a descriptor's block and which of them lie inside the tensor.

    The innermost offset needs no alignment: TMA coordinates count elements.
    """
    itemsize = max(1, desc.base.dtype.element_ty.primitive_bitwidth // 8)
    shape = tuple(desc.block_shape)
    addresses = np.broadcast_to(desc.base.data, shape)
    inside = np.ones(shape, dtype=bool)
    for dim, extent in enumerate(shape):
        along = [1] * len(shape)
        along[dim] = extent
        start = offsets[dim].data.astype(np.int64).reshape(-1)[0]
        index = (start + np.arange(extent, dtype=np.int64)).reshape(along)
        stride = desc.strides[dim].data.astype(np.int64).reshape(-1)[0]
        addresses = addresses + (index * stride * itemsize).astype(np.uint64)
        inside = inside & (index >= 0) & (index < desc.shape[dim].data)
    return TensorHandle(addresses, desc.base.dtype.scalar), TensorHandle(inside, tl.int1)


def _descriptor_load(self: Any, desc: Any, indices: Any, cache: Any, eviction: Any) -> Handle:
    pointers, inside = descriptor_pointers(desc, indices)
    other = padding_values(desc.padding, pointers.data.shape, pointers.get_element_ty())
    return _load(self, pointers, inside, other, cache, eviction, False)


def _descriptor_store(self: Any, desc: Any, value: Handle, indices: Any) -> Any:
    pointers, inside = descriptor_pointers(desc, indices)
    return _store(self, pointers, value, inside, None, None)


def _descriptor_gather(self: Any, desc: Any, rows: Handle, column: Handle, ty: Any) -> Handle:
    parts = [
        _descriptor_load(
            self, desc, [TensorHandle(rows.data[i : i + 1], tl.int32), column], None, None
        )
        for i in range(rows.data.shape[0])
    ]
    data = np.concatenate([part.data.reshape(1, -1) for part in parts])
    return TensorHandle(data, desc.base.dtype.element_ty)


def _descriptor_scatter(self: Any, desc: Any, value: Handle, rows: Handle, column: Handle) -> None:
    for i in range(rows.data.shape[0]):
        row = TensorHandle(value.data[i : i + 1], value.dtype)
        _descriptor_store(self, desc, row, [TensorHandle(rows.data[i : i + 1], tl.int32), column])


def _integer_constant(name: str) -> Callable[..., Handle]:
    kind = STORAGE[name]
    bits = 8 * kind.itemsize

    def method(self: Any, value: int) -> Handle:
        # Constants wrap, as the compiler's do; NumPy would refuse.
        wrapped = int(value) & ((1 << bits) - 1)
        data = np.array([wrapped], dtype=f"uint{bits}").view(kind)
        return TensorHandle(data, getattr(tl, name))

    return method


def _float_constant(ty: Type) -> Callable[..., Handle]:
    def method(self: Any, value: float) -> Handle:
        return make(np.array([value], dtype=np.float64), ty)

    return method


def _null(self: Any, ty: Type) -> Handle:
    return TensorHandle(np.zeros(1, dtype=storage(ty)), ty.scalar)


def _all_ones(self: Any, ty: Type) -> Handle:
    kind = storage(ty)
    ones = np.ones(1, dtype=bool) if kind == np.bool_ else ~np.zeros(1, dtype=kind)
    return TensorHandle(ones, ty.scalar)


def _splat(self: Any, ret_type: Type, arg: Handle) -> Handle:
    return TensorHandle(np.full(tuple(ret_type.shape), arg.data.reshape(-1)[0]), arg.dtype.scalar)


def _unsplat(self: Any, arg: Handle) -> Handle:
    return TensorHandle(arg.data.reshape(-1)[:1].copy(), arg.dtype.scalar)


def _histogram(self: Any, data: Handle, bins: int, mask: Handle | None) -> Handle:
    numbers = data.data.reshape(-1)
    counted = (numbers >= 0) & (numbers < bins)
    if mask is not None:
        counted &= mask.data.reshape(-1)
    counts = np.bincount(numbers[counted].astype(np.int64), minlength=bins)
    return TensorHandle(counts.astype(np.int32), tl.int32)


METHODS: dict[str, Callable[..., Any]] = {
    "create_load": _load_all,
    "create_store": _store_all,
    "create_masked_load": _load,
    "create_masked_store": _store,
    "create_descriptor_load": _descriptor_load,
    "create_descriptor_store": _descriptor_store,
    "create_descriptor_gather": _descriptor_gather,
    "create_descriptor_scatter": _descriptor_scatter,
    "create_splat": _splat,
    "create_unsplat": _unsplat,
    "create_histogram": _histogram,
    "get_null_value": _null,
    "get_all_ones_value": _all_ones,
    "get_fp16": _float_constant(tl.float16),
    "get_bf16": _float_constant(tl.bfloat16),
    "get_fp32": _float_constant(tl.float32),
    "get_fp64": _float_constant(tl.float64),
    **{
        f"get_{sign}int{bits}": _integer_constant(f"{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
