"""Memory of the judge's that a child maps, as the judge sees it."""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

# From <linux/fcntl.h>: no shrinking, no growing, no further seals.
_ADD_SEALS, _SEALS = 1033, 0x2 | 0x4 | 0x1

Range = tuple[int, int]


class MemoryLost(MemoryError):
    """The memory cannot be had, or reached any more; a fresh child may get other memory."""


class KeptMemory(Protocol):
    """Memory that judge and child share.

    Attributes:
        descriptor: what a child maps.
        size: how many bytes it has.
        seen: these bytes as the judge sees them: what it has written, and what it has fetched.
    """

    descriptor: int
    size: int
    seen: Any

    def put(self, ranges: Iterable[Range]) -> None:
        """Give the child what the judge has written to these ranges."""
        ...

    def fetch(self, ranges: Iterable[Range]) -> None:
        """See what these ranges hold now."""
        ...


class KeptHostMemory:
    """A file in memory that both map, so that each sees what the other writes at once.

    It can be neither cut off nor extended, so reading it never faults.
    """

    def __init__(self, size: int) -> None:
        """Make it with at least this many bytes; pages are taken as they are touched."""
        self.size = size + -size % mmap.PAGESIZE
        self.descriptor = os.memfd_create("kerneltruth", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, self.descriptor)
        os.ftruncate(self.descriptor, self.size)
        fcntl.fcntl(self.descriptor, _ADD_SEALS, _SEALS)
        self.seen: Any = np.frombuffer(mmap.mmap(self.descriptor, self.size), np.uint8)

    def put(self, ranges: Iterable[Range]) -> None:
        """Do nothing."""

    def fetch(self, ranges: Iterable[Range]) -> None:
        """Do nothing."""
