"""Who may use a GPU: many that check, or one that times.

Two locked files per device, so that it holds between processes of whatever parent. Whoever wants
to time takes the entrance first: nobody who checks comes in after, and those inside leave in time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

# So many may use much of a device's memory at a time.
_PLACES = 6
# Devices that a process has alone, with its id: a fork of it has them not.
_HELD: dict[str, int] = {}


@contextlib.contextmanager
def checking(device: str) -> Iterator[None]:
    """Use the device beside others that check, while nobody times there."""
    with _locked(device, "entrance", fcntl.LOCK_EX):
        pass
    with _locked(device, "room", fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def timing(device: str) -> Iterator[None]:
    """Have the device alone; within this, in the same process, it is had already."""
    if _HELD.get(device) == os.getpid():
        yield
        return
    with _locked(device, "entrance", fcntl.LOCK_EX), _locked(device, "room", fcntl.LOCK_EX):
        _HELD[device] = os.getpid()
        try:
            yield
        finally:
            del _HELD[device]


@contextlib.contextmanager
def much_memory(device: str, *, alone: bool = False) -> Iterator[None]:
    """Use much of the device's memory: as one of few, or with nobody else who does."""
    places = [f"place-{n}" for n in range(_PLACES)]
    with contextlib.ExitStack() as stack:
        if alone:
            for place in places:
                stack.enter_context(_locked(device, place, fcntl.LOCK_EX))
        elif not any(_entered(stack, device, place) for place in places):
            place = places[os.getpid() % _PLACES]
            stack.enter_context(_locked(device, place, fcntl.LOCK_EX))
        yield


def _entered(stack: contextlib.ExitStack, device: str, place: str) -> bool:
    """Whether a place was free, and is had until the stack ends."""
    try:
        stack.enter_context(_locked(device, place, fcntl.LOCK_EX | fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _locked(device: str, part: str, how: int) -> Iterator[None]:
    # Where several GPUs are dealt out, each process sees its own as the first.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    name = re.sub(r"\W+", "-", f"{visible}-{device}-{part}")
    path = Path(tempfile.gettempdir()) / f"kerneltruth-{os.getuid()}-{name}.lock"
    with path.open("a") as lock:
        fcntl.flock(lock, how)
        try:
            yield
        finally:
            # Processes that were forked meanwhile have the file open too, so closing is not enough.
            fcntl.flock(lock, fcntl.LOCK_UN)
