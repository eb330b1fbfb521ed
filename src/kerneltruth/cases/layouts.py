"""Lay inputs out in memory, between guard bands that reveal a stray access.

An input is passed as one buffer: guard band, elements (with gaps if the layout has them), guard
band. Guards and gaps hold poison: NaN and huge values of both signs, so that reading them shows in
the result, and a fresh pattern each time, so that writing them shows in the bytes. If a result is
NaN for other reasons, another call with small numbers as poison shows whether it depends on them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kerneltruth.cases.recipes import torch_dtype
from kerneltruth.errors import InternalError
from kerneltruth.tasks.arguments import PARTS

LAYOUTS = (
    "contiguous",
    "transposed",
    "strided",
    "row_gaps",
    "offset",
    "misaligned",
    "expanded",
    "channels_last",
)

GUARD_BYTES = 256
_ROW_GAP = 5
_OFFSET_BYTES = 16
# Poison repeats after this many bytes; odd, so that it never lines up with a row.
_POISON_PERIOD = 65_521
# A timed tensor with gaps takes the memory of this many times its elements, at most.
_MOST_SPREAD = 8
# Larger buffers without gaps are poisoned at their ends only.
_LARGE = 2**16

_BITS: dict[int, Any] = {
    **{1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64},
    16: np.dtype([("real", np.uint64), ("imaginary", np.uint64)]),
}
_TORCH_BITS: dict[int, Any] = {
    **{1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64},
    # Two for each element, which NumPy reads together.
    16: torch.int64,
}

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Poison:
    """Bit patterns of a float dtype: `base | (random & free)` is NaN, huge, or from 1 to 2."""

    nan: int
    nan_free: int
    huge: int
    huge_free: int
    sign: int
    one: int
    one_free: int


_FLOAT_POISON = {
    "float64": _Poison(
        0x7FF8 << 48, 2**51 - 1, 0x7FC0 << 48, 2**52 - 1, 1 << 63, 0x3FF << 52, 2**52 - 1
    ),
    "float32": _Poison(0x7FC00000, 0x3FFFFF, 0x7E000000, 0x7FFFFF, 1 << 31, 0x3F800000, 0x7FFFFF),
    "float16": _Poison(0x7E00, 0x1FF, 0x7800, 0x3FF, 1 << 15, 0x3C00, 0x3FF),
    "bfloat16": _Poison(0x7FC0, 0x3F, 0x7E00, 0x7F, 1 << 15, 0x3F80, 0x7F),
    "float8_e4m3fn": _Poison(0x7F, 0, 0x78, 0x6, 1 << 7, 0x38, 0x7),
    "float8_e5m2": _Poison(0x7E, 0x1, 0x78, 0x3, 1 << 7, 0x3C, 0x3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A tensor in its buffer; strides and offset are in elements."""

    buffer: bytes
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The effect of a call on an input: the changed bytes, and its elements afterwards."""

    guards_intact: bool
    gaps_intact: bool
    elements_intact: bool
    tensor: Tensor


def poison(count: int, dtype: str, seed: int, *, small: bool = False) -> Array:
    """Return poison, which nothing should read, as bit patterns; a fresh pattern for each seed.

    `small`: finite numbers near zero, each different from what the same seed gives otherwise.
    """
    if dtype in PARTS:
        parts = poison(2 * count, PARTS[dtype], seed, small=small)
        return parts.view(_BITS[2 * parts.itemsize])
    itemsize = torch_dtype(dtype).itemsize
    need = count * (itemsize + 1)
    noise = _noise(need, seed)
    if need > len(noise):
        noise = np.resize(noise, need)
    choice, random = noise[:count], noise[count:need].view(_BITS[itemsize])
    return _poison_of(choice, random, dtype, small=small)


def _poison_around(
    count: int, before: int, after: int, dtype: str, seed: int, *, small: bool
) -> Array:
    """Return as many elements as `poison` does, but poison only some at both ends.

    Making all of it would take longer than everything else done with a large tensor.
    """
    if dtype in PARTS:
        own = PARTS[dtype]
        parts = _poison_around(2 * count, 2 * before, 2 * after, own, seed, small=small)
        return parts.view(_BITS[2 * parts.itemsize])
    itemsize = torch_dtype(dtype).itemsize
    noise = _noise(count * (itemsize + 1), seed)
    at = np.concatenate([np.arange(before), np.arange(count - after, count)])
    choice = noise[at % len(noise)]
    bytes_of = count + at[:, None] * itemsize + np.arange(itemsize)
    random = noise[bytes_of % len(noise)].reshape(-1).view(_BITS[itemsize])
    ends = _poison_of(choice, random, dtype, small=small)
    elements: Array = np.empty(count, ends.dtype)
    elements[:before], elements[count - after :] = ends[:before], ends[before:]
    return elements


def _noise(need: int, seed: int) -> Array:
    """Return as many bytes as are needed, or one period of them."""
    drawn = hashlib.shake_128(seed.to_bytes(8, "little")).digest(min(need, _POISON_PERIOD))
    return np.frombuffer(drawn, np.uint8)


def _poison_of(choice: Array, random: Array, dtype: str, *, small: bool) -> Array:
    if dtype == "bool":
        truth: Array = np.bitwise_and(choice ^ np.uint8(small), np.uint8(1))
        return truth
    if dtype not in _FLOAT_POISON:
        return _extreme_integers(choice, random, dtype, small=small)
    free, base = _quarters(dtype, small=small)
    quarter = choice & np.uint8(3)
    chosen: Array = free.take(quarter)
    chosen &= random
    chosen |= base.take(quarter)
    return chosen


@cache
def _quarters(dtype: str, *, small: bool) -> tuple[Array, Array]:
    """Return the free and the set bits of a float's poison: huge, NaN, huge and negative, NaN."""
    known = _FLOAT_POISON[dtype]
    bits = _BITS[torch_dtype(dtype).itemsize]
    if small:
        signs = np.array((0, known.sign, 0, known.sign), bits)
        return np.full(4, known.one_free, bits), signs | bits(known.one)
    free = (known.huge_free, known.nan_free, known.huge_free, known.nan_free)
    base = (known.huge, known.nan, known.huge | known.sign, known.nan)
    return np.array(free, bits), np.array(base, bits)


def _extreme_integers(choice: Array, random: Array, dtype: str, *, small: bool) -> Array:
    """Return values within 32 of an integer dtype's least or greatest; if `small`, four others."""
    signed = np.dtype(dtype)
    if small:
        # From 0 to 3, which are near the least value of unsigned dtypes.
        few: Array = random & random.dtype.type(3) | random.dtype.type(64 * (signed.kind == "u"))
        return few
    info = np.iinfo(signed)
    near = (random & random.dtype.type(31)).view(signed)
    ends = np.where(choice & 1, signed.type(info.max), signed.type(info.min))
    chosen: Array = np.where(choice & 1, ends - near, ends + near)
    return chosen.view(random.dtype)


def effective_layout(layout: str, shape: tuple[int, ...]) -> str:
    """Return the layout of a tensor whose rank lacks the requested one."""
    if layout not in LAYOUTS:
        raise InternalError(f"layout {layout!r} is not one of {LAYOUTS}")
    if not shape and layout in ("transposed", "strided", "row_gaps", "expanded"):
        return "offset"
    if layout == "channels_last" and len(shape) != 4:
        return "contiguous"
    if len(shape) == 1 and layout in ("transposed", "row_gaps"):
        return "strided"
    return layout


def _dense(shape: tuple[int, ...], last: int = 1, row_gap: int = 0) -> tuple[int, ...]:
    """Return row-major strides, with a step along the last dim and a gap after each row."""
    strides: list[int] = []
    step = last
    for position, size in enumerate(reversed(shape)):
        strides.append(step)
        step = step * max(size, 1) + (row_gap if position == 0 else 0)
    return tuple(reversed(strides))


def _strides(layout: str, shape: tuple[int, ...], expand: int | None) -> tuple[int, ...]:
    if layout == "transposed":
        swapped = _dense((*shape[:-2], shape[-1], shape[-2]))
        return (*swapped[:-2], swapped[-1], swapped[-2])
    if layout == "strided":
        return _dense(shape, last=2)
    if layout == "channels_last":
        images, channels, *sides = shape
        image, *rows, step = _dense((images, *sides, channels))
        return (image, step, *rows)
    if layout == "row_gaps":
        return _dense(shape, row_gap=_ROW_GAP)
    if layout == "expanded" and expand is not None:
        kept = _dense((*shape[:expand], 1, *shape[expand + 1 :]))
        return (*kept[:expand], 0, *kept[expand + 1 :])
    return _dense(shape)


def strides_like(shape: tuple[int, ...], example: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the strides of a shape that lies as an example does; none where it is contiguous.

    Its dims come in the same order in memory, and what lies between two steps of a dim grows with
    the dims within it. Overlapping elements, and gaps of many times the elements, are left out.

    Args:
        shape: of the same rank, unless the example is empty.
        example: size and stride of each dim.
    """
    if len(shape) != len(example) or 0 in shape:
        return ()
    strides, gapless = [0] * len(shape), [0] * len(shape)
    step = known = dense = 1
    for d in sorted(range(len(shape)), key=lambda d: (example[d][1], -d)):
        size, stride = example[d]
        # A step over a dim of size 1 says nothing.
        wide = stride if size > 1 else known
        if wide < known:
            return ()
        strides[d], gapless[d] = -(-step * wide // known), dense
        step, known, dense = strides[d] * shape[d], wide * size, dense * shape[d]
    found = tuple(strides if span_of(shape, tuple(strides)) <= _MOST_SPREAD * dense else gapless)
    pairs = zip(shape, found, _dense(shape), strict=True)
    return () if all(n == 1 or own == usual for n, own, usual in pairs) else found


def _constant_dim(bits: Array) -> int | None:
    """Return the first dim of size over 1 along which nothing varies."""
    for d, size in enumerate(bits.shape):
        if size > 1 and (bits == bits.take([0], axis=d)).all():
            return d
    return None


def _as_bits(tensor: Tensor) -> Array:
    flat = tensor.detach().cpu().contiguous()
    shape = tuple(flat.shape)
    kind = _TORCH_BITS[flat.dtype.itemsize]
    bits: Array = flat.reshape(-1).view(kind).numpy().view(_BITS[flat.dtype.itemsize])
    return bits.reshape(shape)


def _view(elements: Array, placed: Placed) -> Array:
    strides = tuple(s * elements.itemsize for s in placed.strides)
    start = placed.offset * elements.itemsize
    return np.ndarray(placed.shape, elements.dtype, elements, start, strides)


def place(
    tensor: Tensor,
    layout: str,
    *,
    seed: int,
    small: bool = False,
    guard_bytes: int = GUARD_BYTES,
    expand: int | None = None,
    large: int = _LARGE,
) -> Placed:
    """Lay a tensor out in a poisoned buffer.

    The first element lies 256 bytes or a multiple after the buffer's start, except that `offset`
    adds 16 bytes and `misaligned` one element.

    Args:
        tensor: the logical values.
        layout: one of `LAYOUTS`; see `effective_layout` for ranks that lack it.
        seed: 64 bits from which the poison is made.
        small: whether the poison is small finite numbers.
        guard_bytes: size of each guard band, a multiple of 256.
        expand: for `expanded`, the dim of stride 0, along which the values must not vary; None
            takes the first dim along which they do not.
        large: of more elements, only the surroundings are poisoned.
    """
    if guard_bytes <= 0 or guard_bytes % GUARD_BYTES:
        raise InternalError(f"guard bands of {guard_bytes} bytes: need a multiple of {GUARD_BYTES}")
    bits = _as_bits(tensor)
    shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
    layout = effective_layout(layout, shape)
    if layout == "expanded":
        expand = _constant_dim(bits) if expand is None else expand
        if expand is not None and not (bits == bits.take([0], axis=expand)).all():
            raise InternalError(f"values vary along dim {expand}, which is to be expanded")
    strides = _strides(layout, shape, expand)
    shift = {"offset": _OFFSET_BYTES // bits.itemsize, "misaligned": 1}.get(layout, 0)
    guard = guard_bytes // bits.itemsize
    span = span_of(shape, strides)
    count = 2 * guard + shift + span
    if bits.size == span > large:
        elements = _poison_around(count, guard + shift, guard, dtype, seed, small=small)
    else:
        elements = poison(count, dtype, seed, small=small)
    placed = Placed(buffer=b"", dtype=dtype, shape=shape, strides=strides, offset=guard + shift)
    if bits.size:
        view = _view(elements, placed)
        view[...] = bits
    return Placed(
        buffer=elements.tobytes(), dtype=dtype, shape=shape, strides=strides, offset=guard + shift
    )


def is_contiguous(placed: Placed) -> bool:
    """Return whether the elements are consecutive, row-major; sizes of 1 have any stride."""
    pairs = zip(placed.shape, placed.strides, _dense(placed.shape), strict=True)
    return 0 in placed.shape or all(n == 1 or given == dense for n, given, dense in pairs)


def span_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Count elements from the first to the last, inclusive; without strides, of contiguous ones."""
    if 0 in shape:
        return 0
    if not strides:
        return math.prod(shape)
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def inspect(placed: Placed, after: bytes | bytearray | memoryview) -> Inspection:
    """Compare a buffer with its contents before the call.

    Bytes between elements are gaps; all before the first and after the last are guards.
    """
    if len(after) != len(placed.buffer):
        raise InternalError(f"a buffer of {len(placed.buffer)} bytes came back with {len(after)}")
    itemsize = torch_dtype(placed.dtype).itemsize
    left = np.frombuffer(after, _BITS[itemsize])
    empty = 0 in placed.shape
    logical = np.zeros(placed.shape, left.dtype) if empty else _view(left, placed).copy()
    plain = f"i{min(itemsize, 8)}" if itemsize > 1 else "u1"
    flat = torch.from_numpy(logical.reshape(-1).view(plain))
    tensor = flat.view(torch_dtype(placed.dtype)).reshape(placed.shape)
    if after == placed.buffer:
        return Inspection(guards_intact=True, gaps_intact=True, elements_intact=True, tensor=tensor)
    changed = left != np.frombuffer(placed.buffer, left.dtype)
    inner = np.zeros(len(left), np.bool_)
    if not empty:
        _view(inner, placed)[...] = True
    outside = changed & ~inner
    end = placed.offset + span_of(placed.shape, placed.strides)
    return Inspection(
        guards_intact=not (outside[: placed.offset].any() or outside[end:].any()),
        gaps_intact=not outside[placed.offset : end].any(),
        elements_intact=not (changed & inner).any(),
        tensor=tensor,
    )
