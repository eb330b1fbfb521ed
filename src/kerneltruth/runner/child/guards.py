"""Guard memory that the candidate allocates, in the child.

While `Guard` is entered, each allocation through torch's dispatcher (`empty`, `zeros`, `full`,
`clone`, `to` and so on) lies between two guard bands, which reveal writes beyond it. The call's
poison fills bands and uninitialized memory: elements that a kernel does not write look visibly
wrong, and differ under another poison.

The memory is the judge's as far as that has room, and the judge reads the bands. Where the judge
keeps none, the child does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.runner import emulation
from kerneltruth.runner.child.shared_memory import SharedMemory
from kerneltruth.runner.observation import GuardedAllocation
from kerneltruth.runner.poison import (
    BAND_AFTER,
    BAND_BEFORE,
    TILE_BYTES,
    phase_after,
    poison_bytes,
    ribbon,
    side_of,
)

ALIGNMENT = 256
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
_is_capturing = torch.cuda.is_current_stream_capturing
# What a resize of memory that is not PyTorch's own says.
_NOT_RESIZABLE = "storage that is not resizable"


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
        shared: the allocations in the judge's memory, whose bands it reads itself.
    """

    # Operators that call functions: kernels by `torch.library.wrap_triton`, `torch.cond`.
    supports_higher_order_operators = True

    def __init__(
        self,
        poison: bytes,
        *,
        small_poison: bool = False,
        small_guards: bool = False,
        most_bytes: int = _HELD_BYTES,
        memory: SharedMemory | None = None,
        observe: Callable[[Any, Sequence[Any]], None] | None = None,
    ) -> None:
        """Guard with this poison.

        Allocations come from the judge's `memory`. Beyond it they are held until the end, or until
        they take more than `most_bytes` together; `observe` receives each operator and its
        arguments.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self._observe = observe
        self._memory = memory
        self.shared: list[GuardedAllocation] = []
        self._poison = bytes(poison)
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
        pattern = self._ribbon(torch.float32, device, small=self._small_poison)
        blocks = [
            torch.empty(n, dtype=torch.uint8, device=device) for n in _SIZE_CLASSES for _ in "12"
        ]
        for block in blocks:
            fill(block, pattern)

    def _allocate(self, func: Any, args: Sequence[Any], kwargs: dict[str, object]) -> torch.Tensor:
        like = args[0] if args and isinstance(args[0], torch.Tensor) else None
        named: Any = kwargs.get("device") or ("cpu" if like is None else like.device)
        device = torch.device(named)
        plan = self._plan(func, like, args, kwargs, device)
        if plan is None:
            return func(*args, **kwargs)  # type: ignore[no-any-return]
        size = _extent(plan) * plan.itemsize
        pinned = bool(kwargs.get("pin_memory"))
        place = None
        if self._memory is not None and self._memory.is_of(device) and not pinned:
            # A graph writes wherever its capture has allocated, in every later call.
            captured = device.type == "cuda" and _is_capturing()
            place = None if captured else self._memory.take(BAND_BEFORE + size + BAND_AFTER)
        if self._memory is not None and place is not None:
            memory = self._memory.at(place, BAND_BEFORE + size + BAND_AFTER)
        else:
            memory = _own_memory(BAND_BEFORE + size + BAND_AFTER, device, pinned=pinned)
        middle = memory[BAND_BEFORE : BAND_BEFORE + size].view(plan.dtype)
        made = middle.as_strided(plan.size(), plan.stride())
        fresh = func in _UNINITIALIZED
        if fresh:
            # Compare everything at once: usually bands and contents have one pattern.
            fill(memory, self._ribbon(plan.dtype, device, small=self._small_poison))
        if not fresh or self._small_poison != self._small_guards:
            bands = self._ribbon(plan.dtype, device, small=self._small_guards)
            memory[:BAND_BEFORE].copy_(bands[:BAND_BEFORE])
            phase = phase_after(size)
            memory[-BAND_AFTER:].copy_(bands[phase : phase + BAND_AFTER])
        if func in _FILLED:
            _FILLED[func](made, args)
        elif not fresh:
            made.copy_(args[0], non_blocking=bool(kwargs.get("non_blocking")))
        name = f"{_name(made.dtype)}{list(made.shape)} #{self._count}"
        self._count += 1
        emulation.allocated(name, made)
        if place is None:
            self._hold(name, memory, made.dtype)
        else:
            dtype = _name(made.dtype)
            self.shared.append(GuardedAllocation(name=name, dtype=dtype, start=place, size=size))
        return made

    def _plan(
        self,
        func: Any,
        like: torch.Tensor | None,
        args: Sequence[Any],
        kwargs: dict[str, object],
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
            pattern = bytearray(ribbon(self._poison, _name(dtype), small=small))
            self._ribbons[key] = torch.frombuffer(pattern, dtype=torch.uint8).to(device)
        return self._ribbons[key]

    def _hold(self, name: str, memory: torch.Tensor, dtype: torch.dtype) -> None:
        self._held.append(_Allocation(name=name, memory=memory, dtype=dtype))
        self.held_bytes += memory.numel()
        while self.held_bytes > self._most_bytes and len(self._held) > 1:
            self._release(1)

    def _let_go(self, tensor: torch.Tensor) -> None:
        """Check a tensor's bands early, or leave them behind: a resize may overwrite them."""
        if self._is_shared(tensor):
            _move(tensor)
            return
        start = tensor.untyped_storage().data_ptr()
        for held in self._held:
            if held.memory.untyped_storage().data_ptr() == start:
                self._held.remove(held)
                self._held.appendleft(held)
                self._release(1)
                return

    def _moved(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Move what an operator writes out of the judge's memory; return whether any lay there."""
        written = [
            args[position] if position < len(args) else kwargs.get(parameter.name)
            for position, parameter in enumerate(func._schema.arguments)
            if parameter.alias_info is not None and parameter.alias_info.is_write
        ]
        there = [v for v in written if isinstance(v, torch.Tensor) and self._is_shared(v)]
        for tensor in there:
            _move(tensor)
        return bool(there)

    def _is_shared(self, tensor: torch.Tensor) -> bool:
        return self._memory is not None and self._memory.place_of(tensor.data_ptr()) is not None

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
                self._hits.append(f"{allocation.name}, {side_of(before, after)} it")

    def _bands(self, held: _Allocation) -> tuple[bool | torch.Tensor, bool | torch.Tensor]:
        """Return whether the bands before and after an allocation are unchanged."""
        memory, size = held.memory, held.memory.numel()
        bands = self._ribbon(held.dtype, memory.device, small=self._small_guards)
        return (
            _is_intact(memory, 0, BAND_BEFORE, bands),
            _is_intact(memory, size - BAND_AFTER, size, bands),
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
    if func is _RESIZE and prod(args[1]) != args[0].numel():
        guard._let_go(args[0])
    try:
        return func(*args, **(kwargs or {}))
    except RuntimeError as error:
        # An operator resizes what it writes before it computes anything.
        if _NOT_RESIZABLE not in str(error) or not guard._moved(func, args, kwargs or {}):
            raise
    return func(*args, **(kwargs or {}))


# In the class body, torch would wrap it so that its first call imports all of torch._dynamo.
Guard.__torch_dispatch__ = _dispatch  # type: ignore[assignment,method-assign]


def _own_memory(size: int, device: torch.device, *, pinned: bool) -> torch.Tensor:
    """Return aligned memory of this process."""
    memory = torch.empty(size + ALIGNMENT, dtype=torch.uint8, device=device, pin_memory=pinned)
    shift = -memory.data_ptr() % ALIGNMENT
    return memory[shift : shift + size]


def _move(tensor: torch.Tensor) -> None:
    """Give a tensor memory of this process, which may grow."""
    offset = tensor.storage_offset()
    own: Any = tensor.untyped_storage()
    # One whose resize has failed has its new sizes already.
    reached = (offset + _extent(tensor)) * tensor.itemsize if tensor.numel() else 0
    copy = own.clone()
    copy.resize_(max(copy.nbytes(), reached))
    tensor.set_(copy, offset, tensor.size(), tensor.stride())


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _is_ordinary(tensor: torch.Tensor) -> bool:
    """Return whether a copy contains only the tensor's elements."""
    kind = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    return kind and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())


def _extent(plan: torch.Tensor) -> int:
    """Count elements from the first to the last that a strided tensor reaches."""
    pairs = zip(plan.shape, plan.stride(), strict=True)
    return 1 + sum((n - 1) * stride for n, stride in pairs)


def _is_intact(
    memory: torch.Tensor, start: int, end: int, pattern: torch.Tensor
) -> bool | torch.Tensor:
    """Return whether a band equals the pattern; on a device as a tensor, without a wait."""
    phase = start % TILE_BYTES
    found, expected = memory[start:end], pattern[phase : phase + end - start]
    if memory.device.type == "cpu":
        # Comparing bytes is several times faster than torch.equal.
        return bool(found.numpy().tobytes() == expected.numpy().tobytes())
    return (found == expected).all()


def fill(memory: torch.Tensor, pattern: torch.Tensor) -> None:
    """Repeat a flat pattern over flat memory."""
    whole = memory.numel() // pattern.numel()
    cut = whole * pattern.numel()
    if whole:
        memory[:cut].view(whole, pattern.numel()).copy_(pattern.expand(whole, -1))
    memory[cut:].copy_(pattern[: memory.numel() - cut])


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
    tile = np.frombuffer(poison_bytes(poison, _name(kind), small=small), dtype=dtype)
    return np.resize(tile, count)
