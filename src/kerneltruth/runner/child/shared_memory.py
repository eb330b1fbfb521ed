"""The judge's memory in the child: inputs lie in it, and what the candidate allocates on the CPU.

The judge reads it by itself. What the child says of it is where things lie, and what is still used.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import weakref

import torch

from kerneltruth.runner.gaps import Gaps

# From <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 32 * 2**20


class SharedMemory:
    """A file of the judge's, mapped into this process."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._map = mmap.mmap(descriptor, size)
        self._first = torch.frombuffer(self._map, dtype=torch.uint8).data_ptr()
        self._size = size
        self._gaps = Gaps(())
        # By where they begin: what each tensor keeps alive, and its end.
        self._given: dict[int, tuple[weakref.ref[memoryview], int]] = {}
        _keep_freed_memory()

    def begin(self, room: tuple[int, ...]) -> None:
        """Begin a call whose allocations have this room."""
        self._gaps = Gaps(room)

    def take(self, size: int) -> int | None:
        """Take memory for an allocation; return where it begins, None if there is no room."""
        return self._gaps.take(size)

    def at(self, start: int, size: int) -> torch.Tensor:
        """Return some of the memory, as a tensor with a storage of its own."""
        if not size:
            return torch.empty(0, dtype=torch.uint8)
        piece = memoryview(self._map)[start : start + size]
        self._given[start] = weakref.ref(piece), start + size
        return torch.frombuffer(piece, dtype=torch.uint8)

    def place_of(self, address: int) -> int | None:
        """Return where in the memory an address lies, if it does."""
        place = address - self._first
        return place if 0 <= place < self._size else None

    def used(self) -> tuple[int, ...]:
        """Return what tensors still use: where each piece begins and ends."""
        self._given = {s: given for s, given in self._given.items() if given[0]() is not None}
        return tuple(n for start, (_, end) in self._given.items() for n in (start, end))


def _keep_freed_memory() -> None:
    """Make malloc keep large pieces that are freed, where it can.

    It learns to when large buffers are freed, and here none are. Without, each temporary of the
    interpreter's begins with page faults.
    """
    with contextlib.suppress(AttributeError):
        malloc = ctypes.CDLL(None).mallopt
        malloc(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        malloc(_M_TRIM_THRESHOLD, 2 * _KEPT_BYTES)
