"""Guard memory that the candidate allocates, in the child.

While `Guard` is entered, each allocation through torch's dispatcher (`empty`, `zeros`, `full`,
`clone`, `to` and so on) lies between two guard bands, which reveal writes beyond it. The call's
poison fills bands and uninitialized memory: elements that a kernel does not write look visibly
wrong, and differ under another poison.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.runner import emulation

ALIGNMENT = 256
# A tile that runs over its last row writes far beyond the end, and seldom before the beginning. The
# first is a multiple of the pattern's length, so that an allocation begins as the pattern does.
_BAND_BEFORE = 16 * 1024
_BAND_AFTER = 64 * 1024
_TILE_BYTES = 8192
# The pattern repeated: long enough to compare a band with, at any phase.
_RIBBON_TILES = 16
# Beyond this much memory, the oldest allocation is checked early and released.
_HELD_BYTES = 512 * 2**20
_SIZE_CLASSES = (512, 64 * 1024, 2**20, 12 * 2**20)

_aten = torch.ops.aten
_UNINITIALIZED = frozenset(
    {
        _aten.empty.memory_format,
        _aten.empty_like.default,
        _aten.empty_strided.default,
        _aten.new_empty.default,
        _aten.new_empty_strided.default,
        _aten.empty_permuted.default,
    }
)

# The value that fills an allocation, given the operator's arguments.
_Fill = Callable[[torch.Tensor, Sequence[Any]], Any]
_FILLED: Mapping[Any, _Fill] = {
    _aten.zeros.default: lambda made, args: made.zero_(),
    _aten.zeros_like.default: lambda made, args: made.zero_(),
    _aten.new_zeros.default: lambda made, args: made.zero_(),
    _aten.ones.default: lambda made, args: made.fill_(1),
    _aten.ones_like.default: lambda made, args: made.fill_(1),
    _aten.new_ones.default: lambda made, args: made.fill_(1),
    _aten.full.default: lambda made, args: made.fill_(args[1]),
    _aten.full_like.default: lambda made, args: made.fill_(args[1]),
    _aten.new_full.default: lambda made, args: made.fill_(args[2]),
}
# The operators that `torch.tensor` and `torch.from_numpy` end in.
_FRESH = _aten.lift_fresh.default
# Copies of their first argument.
_COPIES = frozenset({_aten.clone.default, _aten._to_copy.default, _FRESH})
_SERVED = _UNINITIALIZED | _FILLED.keys() | _COPIES
_RESIZE = _aten.resize_.default

# Unsigned container, exponent bits, mantissa bits.
_FLOATS: Mapping[torch.dtype, tuple[str, int, int]] = {
    torch.float64: ("u8", 11, 52),
    torch.float32: ("u4", 8, 23),
    torch.float16: ("u2", 5, 10),
    torch.bfloat16: ("u2", 8, 7),
    torch.float8_e5m2: ("u1", 5, 2),
}


def poison_bytes(poison: bytes, dtype: torch.dtype, *, small: bool = False) -> bytes:
    """Return the pattern, a function of the call's poison and the dtype alone.

    Half of the floats are NaN, half are huge; integers are far from zero; bools are random.
    `small`: floats from 1 to 2 and their negatives, integers from 0 to 3, inverted bools. Every
    element then differs from the other pattern, which reveals reads that NaN would hide.
    """
    noise = hashlib.shake_256(poison + str(dtype).encode()).digest(_TILE_BYTES)
    if dtype.is_complex:
        dtype = dtype.to_real()
    if dtype in _FLOATS:
        floats = _small_floats if small else _wild_floats
        return bytes(floats(noise, *_FLOATS[dtype]).tobytes())
    if dtype == torch.float8_e4m3fn:
        if small:
            return bytes(_small_floats(noise, "u1", 4, 3).tobytes())
        raw = np.frombuffer(noise, dtype="u1")
        # Its only NaNs are 0x7f and 0xff; 0x78 to 0x7e are the largest finite values.
        return np.where(raw & 0x08, raw | 0x7F, (raw & 0x87) | 0x78).astype("u1").tobytes()
    if dtype == torch.bool:
        return ((np.frombuffer(noise, dtype="u1") ^ small) & 1).astype("u1").tobytes()
    if dtype in (torch.int64, torch.int32, torch.int16, torch.int8):
        if small:
            return bytes((np.frombuffer(noise, dtype=f"u{dtype.itemsize}") & 3).tobytes())
        return bytes(_far_integers(noise, dtype.itemsize).tobytes())
    return bytes(255 - n for n in noise) if small else noise


def _wild_floats(noise: bytes, container: str, exponent: int, mantissa: int) -> Any:
    raw = np.frombuffer(noise, dtype=container)
    kind = raw.dtype.type
    sign = kind(1 << (exponent + mantissa))
    payload = kind((1 << mantissa) - 1)
    quiet = kind(((1 << exponent) - 1) << mantissa | 1 << (mantissa - 1))
    huge = kind(((1 << exponent) - 2) << mantissa)
    # The lowest exponent bit is noise that neither the sign nor the payload uses.
    is_nan = (raw >> kind(mantissa)) & kind(1) == 1
    return ((raw & (sign | payload)) | np.where(is_nan, quiet, huge)).astype(container)


def _small_floats(noise: bytes, container: str, exponent: int, mantissa: int) -> Any:
    raw = np.frombuffer(noise, dtype=container)
    kind = raw.dtype.type
    free = kind(1 << (exponent + mantissa) | (1 << mantissa) - 1)
    one = kind(((1 << (exponent - 1)) - 1) << mantissa)
    return ((raw & free) | one).astype(container)


def _far_integers(noise: bytes, size: int) -> Any:
    raw = np.frombuffer(noise, dtype=f"i{size}")
    top = raw.dtype.type(1 << (8 * size - 2))
    # The two upper bits become 01 or 10: at least a quarter of the range away from zero.
    return np.where(raw < 0, raw & ~top, raw | top).astype(f"i{size}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Allocation:
    """A guarded allocation: the band before, the candidate's part, the band after."""

    name: str
    memory: torch.Tensor
    dtype: torch.dtype


class Guard(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Guards allocations, poisons uninitialized ones; `hits()` names those with a written band.

    Attributes:
        held_bytes: how much the held allocations take.
    """

    def __init__(
        self,
        poison: bytes,
        *,
        small_poison: bool = False,
        small_guards: bool = False,
        most_bytes: int = _HELD_BYTES,
        observe: Callable[[Any, Sequence[Any]], None] | None = None,
    ) -> None:
        """Guard with this poison.

        Allocations are held until the end, or until they take more than `most_bytes` together;
        `observe` receives each operator and its arguments.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self._observe = observe
        self._poison = poison
        self._small_poison = small_poison
        self._small_guards = small_guards
        self._ribbons: dict[tuple[torch.dtype, torch.device, bool], torch.Tensor] = {}
        self._held: deque[_Allocation] = deque()
        self._most_bytes = most_bytes
        self.held_bytes = 0
        self._count = 0
        self._hits: list[str] = []

    def hits(self) -> tuple[str, ...]:
        """Check all bands, release the memory, and name the allocations with written bands."""
        self._release(len(self._held))
        return tuple(self._hits)

    def prime_cuda(self, device: torch.device) -> None:
        """Poison what the CUDA caching allocator will return, for allocations not seen here."""
        ribbon = self._ribbon(torch.float32, device, small=self._small_poison)
        blocks = [
            torch.empty(n, dtype=torch.uint8, device=device) for n in _SIZE_CLASSES for _ in "12"
        ]
        for block in blocks:
            fill(block, ribbon)

    def _allocate(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor:
        like = args[0] if args and isinstance(args[0], torch.Tensor) else None
        device = torch.device(kwargs.get("device") or ("cpu" if like is None else like.device))
        plan = self._plan(func, like, args, kwargs, device)
        if plan is None:
            return func(*args, **kwargs)  # type: ignore[no-any-return]
        size = _extent(plan) * plan.itemsize
        memory = torch.empty(
            _BAND_BEFORE + size + _BAND_AFTER + ALIGNMENT,
            dtype=torch.uint8,
            device=device,
            pin_memory=bool(kwargs.get("pin_memory")),
        )
        shift = -memory.data_ptr() % ALIGNMENT
        memory = memory[shift : memory.numel() - ALIGNMENT + shift]
        middle = memory[_BAND_BEFORE : _BAND_BEFORE + size].view(plan.dtype)
        made = middle.as_strided(plan.size(), plan.stride())
        fresh = func in _UNINITIALIZED
        if fresh:
            # Compare everything at once: usually bands and contents have one pattern.
            fill(memory, self._ribbon(plan.dtype, device, small=self._small_poison))
        if not fresh or self._small_poison != self._small_guards:
            ribbon = self._ribbon(plan.dtype, device, small=self._small_guards)
            memory[:_BAND_BEFORE].copy_(ribbon[:_BAND_BEFORE])
            phase = (_BAND_BEFORE + size) % _TILE_BYTES
            memory[-_BAND_AFTER:].copy_(ribbon[phase : phase + _BAND_AFTER])
        if func in _FILLED:
            _FILLED[func](made, args)
        elif not fresh:
            made.copy_(args[0], non_blocking=bool(kwargs.get("non_blocking")))
        self._hold(memory, made)
        return made

    def _plan(
        self,
        func: Any,
        like: torch.Tensor | None,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        device: torch.device,
    ) -> torch.Tensor | None:
        """Return a meta tensor with the requested sizes and strides; None without guards."""
        layout = kwargs.get("layout") or (torch.strided if like is None else like.layout)
        if device.type not in ("cpu", "cuda") or layout != torch.strided:
            return None
        if like is not None and not _is_ordinary(like):
            return None
        if func is _FRESH and not args[0].untyped_storage().resizable():
            # It shares memory with an array of NumPy's.
            return None
        wanted = {k: v for k, v in kwargs.items() if k not in ("pin_memory", "device")}
        meta = torch.device("meta")
        if func in _COPIES:
            assert like is not None
            form = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=meta)
            plan: torch.Tensor = func(form, *args[1:], **wanted)
        else:
            plan = func(*args, **wanted, device=meta)
        return plan if plan.numel() else None

    def _ribbon(self, dtype: torch.dtype, device: torch.device, *, small: bool) -> torch.Tensor:
        key = (dtype, device, small)
        if key not in self._ribbons:
            tile = poison_bytes(self._poison, dtype, small=small)
            pattern = bytearray(tile * _RIBBON_TILES)
            self._ribbons[key] = torch.frombuffer(pattern, dtype=torch.uint8).to(device)
        return self._ribbons[key]

    def _hold(self, memory: torch.Tensor, made: torch.Tensor) -> None:
        name = f"{str(made.dtype).removeprefix('torch.')}{list(made.shape)} #{self._count}"
        self._count += 1
        emulation.allocated(name, made)
        self._held.append(_Allocation(name=name, memory=memory, dtype=made.dtype))
        self.held_bytes += memory.numel()
        while self.held_bytes > self._most_bytes and len(self._held) > 1:
            self._release(1)

    def _let_go(self, tensor: torch.Tensor) -> None:
        """Check a tensor's bands early: a resize may overwrite them."""
        start = tensor.untyped_storage().data_ptr()
        for held in self._held:
            if held.memory.untyped_storage().data_ptr() == start:
                self._held.remove(held)
                self._held.appendleft(held)
                self._release(1)
                return

    def _release(self, count: int) -> None:
        """Check the bands of the oldest `count` allocations, and release them."""
        old = [self._held.popleft() for _ in range(count)]
        self.held_bytes -= sum(a.memory.numel() for a in old)
        for allocation in old:
            emulation.released(allocation.memory)
        sides = [self._bands(a) for a in old]
        # One wait for the device, for all allocations together.
        flags = [flag for pair in sides for flag in pair if isinstance(flag, torch.Tensor)]
        seen = iter(torch.stack([f.to(flags[0].device) for f in flags]).tolist() if flags else ())
        for allocation, pair in zip(old, sides, strict=True):
            before, after = (next(seen) if isinstance(f, torch.Tensor) else f for f in pair)
            if not (before and after):
                side = "before" if after else "after" if before else "before and after"
                self._hits.append(f"{allocation.name}, {side} it")

    def _bands(self, held: _Allocation) -> tuple[bool | torch.Tensor, bool | torch.Tensor]:
        """Return whether the bands before and after an allocation are unchanged."""
        memory, size = held.memory, held.memory.numel()
        ribbon = self._ribbon(held.dtype, memory.device, small=self._small_guards)
        return (
            _is_intact(memory, 0, _BAND_BEFORE, ribbon),
            _is_intact(memory, size - _BAND_AFTER, size, ribbon),
        )


def _dispatch(
    guard: Guard,
    func: Any,
    types: Sequence[type],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Serve allocations from guarded memory; leave everything else alone."""
    if guard._observe is not None:
        guard._observe(func, args)
    if func in _SERVED:
        return guard._allocate(func, args, dict(kwargs or {}))
    if func is _RESIZE:
        guard._let_go(args[0])
    return func(*args, **(kwargs or {}))


# In the class body, torch would wrap it so that its first call imports all of torch._dynamo.
Guard.__torch_dispatch__ = _dispatch  # type: ignore[assignment,method-assign]


def _is_ordinary(tensor: torch.Tensor) -> bool:
    """Return whether a copy contains only the tensor's elements."""
    kind = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    return kind and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())


def _extent(plan: torch.Tensor) -> int:
    """Count elements from the first to the last that a strided tensor reaches."""
    pairs = zip(plan.shape, plan.stride(), strict=True)
    return 1 + sum((n - 1) * stride for n, stride in pairs)


def _is_intact(
    memory: torch.Tensor, start: int, end: int, ribbon: torch.Tensor
) -> bool | torch.Tensor:
    """Return whether a band equals the ribbon; on a device as a tensor, without a wait."""
    phase = start % _TILE_BYTES
    found, expected = memory[start:end], ribbon[phase : phase + end - start]
    if memory.device.type == "cpu":
        # Comparing bytes is several times faster than torch.equal.
        return bool(found.numpy().tobytes() == expected.numpy().tobytes())
    return (found == expected).all()


def fill(memory: torch.Tensor, ribbon: torch.Tensor) -> None:
    """Repeat a flat pattern over flat memory."""
    whole = memory.numel() // ribbon.numel()
    cut = whole * ribbon.numel()
    if whole:
        memory[:cut].view(whole, ribbon.numel()).copy_(ribbon.expand(whole, -1))
    memory[cut:].copy_(ribbon[: memory.numel() - cut])


@contextmanager
def numpy_poisoned(poison: bytes, *, small: bool = False) -> Iterator[None]:
    """Poison what `numpy.empty` and `numpy.empty_like` return, for NumPy candidates."""
    empty, empty_like = np.empty, np.empty_like

    def poisoned(original: Callable[..., Any]) -> Callable[..., Any]:
        def allocate(*args: Any, **kwargs: Any) -> Any:
            array = original(*args, **kwargs)
            if array.dtype.kind in "fiub" and array.size and array.base is None:
                flat = array.reshape(-1, order="A")
                flat[:] = _numpy_pattern(poison, array.dtype, array.size, small=small)
            return array

        return allocate

    for name, original in (("empty", empty), ("empty_like", empty_like)):
        setattr(np, name, poisoned(original))
    try:
        yield
    finally:
        for name, original in (("empty", empty), ("empty_like", empty_like)):
            setattr(np, name, original)


def _numpy_pattern(poison: bytes, dtype: np.dtype[Any], count: int, *, small: bool) -> Any:
    name = "bool" if dtype.kind == "b" else dtype.name
    kind = getattr(torch, name, torch.uint8)
    tile = np.frombuffer(poison_bytes(poison, kind, small=small), dtype=dtype)
    return np.resize(tile, count)
