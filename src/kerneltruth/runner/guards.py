"""Guards around memory that the candidate allocates uninitialized, in the child.

While `Guard` is entered, each uninitialized allocation that torch's dispatcher sees lies between
two guard bands, and all of it is filled with the call's poison: what a kernel does not write looks
visibly wrong, and different under another poison; what it writes beyond its output is seen.
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

ALIGNMENT = 256
# A tile that runs over its last row writes far beyond the end, and seldom before the beginning.
# The first is a multiple of the pattern's length, so that an allocation begins as the pattern does.
_BAND_BEFORE = 16 * 1024
_BAND_AFTER = 64 * 1024
_TILE_BYTES = 8192
# The pattern repeated: long enough to compare a band with, whatever its phase.
_RIBBON_TILES = 16
# Beyond this much memory, the oldest allocation is checked early and let go.
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

# Unsigned container, exponent bits, mantissa bits.
_FLOATS: Mapping[torch.dtype, tuple[str, int, int]] = {
    torch.float64: ("u8", 11, 52),
    torch.float32: ("u4", 8, 23),
    torch.float16: ("u2", 5, 10),
    torch.bfloat16: ("u2", 8, 7),
    torch.float8_e5m2: ("u1", 5, 2),
}


def poison_bytes(
    poison: bytes, dtype: torch.dtype, size: int = _TILE_BYTES, *, small: bool = False
) -> bytes:
    """The pattern, a function of the call's poison and the dtype alone.

    Half of the floats are NaN, half are huge; integers are far from zero; bools are random.
    `small`: floats from 1 to 2 and their negatives, integers from 0 to 3, the other bools: each
    element is another one then, and where NaN hides what is read, it shows.
    """
    noise = hashlib.shake_256(poison + str(dtype).encode()).digest(size)
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
    """Poisons and guards uninitialized allocations; `hits()` names those with a written band."""

    def __init__(self, poison: bytes, *, small: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._poison = poison
        self._small = small
        self._ribbons: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}
        self._held: deque[_Allocation] = deque()
        self._held_bytes = 0
        self._count = 0
        self._hits: list[str] = []

    def hits(self) -> tuple[str, ...]:
        """Check all bands, release the memory, and name the allocations whose bands were hit."""
        while self._held:
            self._release()
        return tuple(self._hits)

    def prime_cuda(self, device: torch.device) -> None:
        """Poison what the CUDA caching allocator will hand out, for allocations not seen here."""
        ribbon = self._ribbon(torch.float32, device)
        blocks = [
            torch.empty(n, dtype=torch.uint8, device=device) for n in _SIZE_CLASSES for _ in "12"
        ]
        for block in blocks:
            _fill(block, ribbon)

    def _allocate(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor:
        like = next((a for a in args if isinstance(a, torch.Tensor)), None)
        device = kwargs.get("device") or (like.device if like is not None else torch.device("cpu"))
        device = torch.device(device)
        plan = self._plan(func, args, kwargs, device)
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
        _fill(memory, self._ribbon(plan.dtype, device))
        self._hold(memory, plan)
        middle = memory[_BAND_BEFORE : _BAND_BEFORE + size].view(plan.dtype)
        return middle.as_strided(plan.size(), plan.stride())

    def _plan(
        self, func: Any, args: Sequence[Any], kwargs: dict[str, Any], device: torch.device
    ) -> torch.Tensor | None:
        """A meta tensor with the sizes and strides asked for; None where guards do not apply."""
        like = args[0] if args and isinstance(args[0], torch.Tensor) else None
        layout = kwargs.get("layout") or (torch.strided if like is None else like.layout)
        quantized = like is not None and like.is_quantized
        if device.type not in ("cpu", "cuda") or layout != torch.strided or quantized:
            return None
        wanted = {k: v for k, v in kwargs.items() if k not in ("pin_memory", "device")}
        plan: torch.Tensor = func(*args, **wanted, device=torch.device("meta"))
        return plan if plan.numel() else None

    def _ribbon(self, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        key = (dtype, device)
        if key not in self._ribbons:
            tile = poison_bytes(self._poison, dtype, small=self._small)
            pattern = bytearray(tile * _RIBBON_TILES)
            self._ribbons[key] = torch.frombuffer(pattern, dtype=torch.uint8).to(device)
        return self._ribbons[key]

    def _hold(self, memory: torch.Tensor, plan: torch.Tensor) -> None:
        name = f"{str(plan.dtype).removeprefix('torch.')}{list(plan.shape)} #{self._count}"
        self._count += 1
        self._held.append(_Allocation(name=name, memory=memory, dtype=plan.dtype))
        self._held_bytes += memory.numel()
        while self._held_bytes > _HELD_BYTES and len(self._held) > 1:
            self._release()

    def _release(self) -> None:
        old = self._held.popleft()
        self._held_bytes -= old.memory.numel()
        ribbon = self._ribbon(old.dtype, old.memory.device)
        size = old.memory.numel()
        before = _is_intact(old.memory, 0, _BAND_BEFORE, ribbon)
        after = _is_intact(old.memory, size - _BAND_AFTER, size, ribbon)
        if not (before and after):
            side = "before and after" if not (before or after) else "after" if before else "before"
            self._hits.append(f"{old.name}, {side} it")


def _dispatch(
    guard: Guard,
    func: Any,
    types: Sequence[type],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Serve uninitialized allocations from guarded memory, and leave all else alone."""
    if func not in _UNINITIALIZED:
        return func(*args, **(kwargs or {}))
    return guard._allocate(func, args, dict(kwargs or {}))


# In the class body, torch would wrap it so that its first call imports all of torch._dynamo.
Guard.__torch_dispatch__ = _dispatch  # type: ignore[assignment,method-assign]


def _extent(plan: torch.Tensor) -> int:
    """Elements from the first to the last that a strided tensor reaches."""
    pairs = zip(plan.shape, plan.stride(), strict=True)
    return 1 + sum((n - 1) * stride for n, stride in pairs)


def _is_intact(memory: torch.Tensor, start: int, end: int, ribbon: torch.Tensor) -> bool:
    phase = start % _TILE_BYTES
    found, expected = memory[start:end], ribbon[phase : phase + end - start]
    if memory.device.type == "cpu":
        # Comparing bytes is several times faster than torch.equal.
        return bool(found.numpy().tobytes() == expected.numpy().tobytes())
    return torch.equal(found, expected)


def _fill(memory: torch.Tensor, ribbon: torch.Tensor) -> None:
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
