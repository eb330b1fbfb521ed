"""Locks and queues of `multiprocessing` for a child that may make no files in shared memory.

Python names each semaphore by a file there. These have none, and lie in memory that the child
shares with its forks: libraries make locks when they are imported, and are right to.
"""

from __future__ import annotations

import ctypes
import importlib
import mmap
import os
from typing import Any

_SIZE = 32  # of a sem_t
_module: Any = importlib.import_module("_multiprocessing")
_libc = ctypes.CDLL(None, use_errno=True)
_Named: Any = _module.SemLock
# A fork may use a semaphore for longer than the process that has made it.
_memory: list[mmap.mmap] = []


class _Unnamed(_Named):  # type: ignore[misc]
    """Makes semaphores without names, of the same class as others."""

    def __new__(cls, kind: int, value: int, most: int, name: str, unlink: bool) -> Any:
        memory = mmap.mmap(-1, _SIZE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        if _libc.sem_init(ctypes.c_void_p(address), 1, ctypes.c_uint(value)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        _memory.append(memory)
        return _Named._rebuild(address, kind, most, None)


def install() -> None:
    """Have this process make no semaphores with names."""
    _module.SemLock = _Unnamed
