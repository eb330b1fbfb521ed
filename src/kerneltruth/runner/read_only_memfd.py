"""Share memory that other processes may read and that no process can change any more.

A candidate that could write to the next one's inputs would spoil them. Linux seals such memory
permanently (`memfd_create(2)`), and every process of the same user can open it by its path.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
import weakref
from collections.abc import Callable

# From <linux/fcntl.h>; Python names them on Linux only, and not on every build.
_ADD_SEALS = 1033
_SEAL, _SHRINK, _GROW, _WRITE = 0x1, 0x2, 0x4, 0x8


# Sealing fails for a moment while the kernel itself holds a page.
TRIES = 40
PAUSE_S = 0.05


class ReadOnlyMemfd:
    """A copy of some bytes at `path`, for as long as this object lives."""

    def __init__(
        self,
        data: memoryview,
        *,
        control: Callable[[int, int, int], object] = fcntl.fcntl,
        pause_s: float = PAUSE_S,
    ) -> None:
        """Copy the bytes and seal the copy; `control` is the system call that seals it."""
        descriptor = os.memfd_create("kerneltruth", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        try:
            rest = data
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            _seal(descriptor, control, pause_s)
        except BaseException:
            os.close(descriptor)
            raise
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"
        weakref.finalize(self, os.close, descriptor)


def _seal(descriptor: int, control: Callable[[int, int, int], object], pause_s: float) -> None:
    for left in reversed(range(TRIES)):
        try:
            control(descriptor, _ADD_SEALS, _SEAL | _SHRINK | _GROW | _WRITE)
            return
        except OSError as error:
            if error.errno != errno.EBUSY or not left:
                raise
            time.sleep(pause_s)
