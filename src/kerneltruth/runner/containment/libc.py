"""Calls of the C library, with its errors as exceptions."""

from __future__ import annotations

import ctypes
import functools
import os


@functools.cache
def libc() -> ctypes.CDLL:
    """Return the C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


def checked(name: str, result: int) -> int:
    """Return the result of a call that was just made.

    Raises:
        OSError: the call failed.
    """
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result


def prctl(option: int, *values: object) -> None:
    """Change a property of this process.

    Raises:
        OSError: it failed.
    """
    arguments = (*values, 0, 0, 0, 0)[:4]
    checked(f"prctl({option})", libc().prctl(option, *arguments))
