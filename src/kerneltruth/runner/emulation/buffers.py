"""Track the memory that kernels may touch, for launches in the interpreter.

A launch may touch its tensor arguments, and tensors whose address the candidate has read. For an
input, and for memory that `guards` allocated, that is the part between the guard bands; for any
other tensor it is its whole storage, so that a view may reach as far as its base.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.multiprocessing.reductions import StorageWeakRef

from kerneltruth.runner.observation import Access

Array = NDArray[Any]

_MOST_ACCESSES = 8
_MOST_EXPOSED = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Addresses from `low` up to `high`, and the readable part of the storage around them."""

    name: str
    low: int
    high: int
    first: int
    end: int
    itemsize: int = 1


class Table:
    """The regions of one launch, by address."""

    def __init__(self, regions: Iterable[Region]) -> None:
        """Merge regions that overlap."""
        merged: list[Region] = []
        for region in sorted(regions, key=lambda r: (r.low, -r.high)):
            if merged and region.low < merged[-1].high:
                last = merged[-1]
                merged[-1] = Region(
                    name=last.name,
                    low=last.low,
                    high=max(last.high, region.high),
                    first=min(last.first, region.first),
                    end=max(last.end, region.end),
                    itemsize=last.itemsize,
                )
            else:
                merged.append(region)
        self.regions = merged
        self._lows = [r.low for r in merged]
        self._limits: dict[tuple[int, int], tuple[Array, Array]] = {}

    def limits(self, address: int, size: int) -> tuple[Array, Array] | None:
        """Return where an address's region begins, and how far an element of a size reaches."""
        at = bisect_right(self._lows, address) - 1
        if at < 0:
            return None
        known = self._limits.get((at, size))
        if known is None:
            region = self.regions[at]
            if region.high - region.low < size:
                return None
            span = region.high - region.low - size
            known = np.array(region.low, np.uint64), np.array(span, np.uint64)
            self._limits[at, size] = known
        return known

    def inside(self, addresses: Array, size: int, *, readable: bool = False) -> Array:
        """Return which elements of that size lie in a region, or in its bands if `readable`."""
        found = np.zeros(addresses.shape, dtype=bool)
        for region in self.regions:
            low, high = (region.first, region.end) if readable else (region.low, region.high)
            if high - low >= size:
                found |= (addresses >= np.uint64(low)) & (addresses <= np.uint64(high - size))
        return found

    def nearest(self, address: int) -> Region | None:
        """Return the region around an address, else the nearest one."""

        def distance(region: Region) -> int:
            if region.first <= address < region.end:
                return 0
            return max(region.low - address, address - region.high + 1)

        return min(self.regions, key=distance, default=None)


class _State:
    on = False
    # By where their storages begin.
    known: ClassVar[dict[int, Region]] = {}
    exposed: ClassVar[dict[int, tuple[StorageWeakRef, Region]]] = {}
    accesses: ClassVar[dict[tuple[Any, ...], Access]] = {}


def begin(inputs: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Begin a call with these inputs, by name; nothing has been touched yet."""
    _State.on = True
    _State.known.clear()
    _State.accesses.clear()
    for name, tensor in inputs:
        _know(name, tensor)


def collect() -> tuple[Access, ...]:
    """Return accesses outside of every region since `begin`; stop watching allocations."""
    _State.on = False
    seen = tuple(_State.accesses.values())
    _State.known.clear()
    _State.accesses.clear()
    return seen


def allocated(name: str, tensor: torch.Tensor) -> None:
    """Record a tensor between guard bands."""
    if _State.on:
        _know(name, tensor)


def released(memory: torch.Tensor) -> None:
    """Forget this memory's guard bands."""
    _State.known.pop(memory.untyped_storage().data_ptr(), None)


def expose(tensor: torch.Tensor) -> None:
    """Record that the candidate has a tensor's address, and may pass it to a kernel in any form."""
    if len(_State.exposed) >= _MOST_EXPOSED:
        _State.exposed.pop(next(iter(_State.exposed)))
    storage = tensor.untyped_storage()
    region = region_of("a tensor", tensor)
    _State.exposed[storage.data_ptr()] = StorageWeakRef(storage), region  # type: ignore[no-untyped-call]


def region_of(name: str, tensor: torch.Tensor) -> Region:
    """Return what a kernel may touch of a tensor argument."""
    storage = tensor.untyped_storage()
    start = storage.data_ptr()
    known = _State.known.get(start)
    if known is not None:
        return known
    end = start + storage.nbytes()
    return Region(
        name=name, low=start, high=end, first=start, end=end, itemsize=tensor.element_size()
    )


def exposed() -> list[Region]:
    """Return the regions of tensors whose addresses the candidate has."""
    for start, (storage, _) in list(_State.exposed.items()):
        if storage.expired():  # type: ignore[no-untyped-call]
            del _State.exposed[start]
    return [region for _, region in _State.exposed.values()]


def note(access: Access) -> None:
    """Record an access outside of every region; of equal ones, only the first."""
    key = (access.kernel, access.line, access.write, access.buffer)
    if len(_State.accesses) < _MOST_ACCESSES:
        _State.accesses.setdefault(key, access)


def _know(name: str, tensor: torch.Tensor) -> None:
    storage, itemsize = tensor.untyped_storage(), tensor.element_size()
    start = storage.data_ptr()
    low = start + int(tensor.storage_offset()) * itemsize
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    span = 0 if tensor.numel() == 0 else 1 + sum(int(n - 1) * int(s) for n, s in pairs)
    _State.known[start] = Region(
        name=name,
        low=low,
        high=low + span * itemsize,
        first=start,
        end=start + storage.nbytes(),
        itemsize=itemsize,
    )
