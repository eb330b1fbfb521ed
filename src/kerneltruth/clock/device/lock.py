"""Share a GPU: many processes may check kernels at once, or one may time them.

Two locked files per device work between processes of any parent. A process that times takes the
entrance lock first: no new check enters, and running checks leave in time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

# At most this many processes may use much of a device's memory at once.
_PLACES = 6
# Devices that a process holds alone, with its process id: a fork does not inherit them.
_HELD: dict[str, int] = {}


@contextlib.contextmanager
def device_for_checks(device: str) -> Iterator[None]:
    """Share the device with other checks; wait while something is timed on it."""
    with _locked(device, "entrance", fcntl.LOCK_EX):
        pass
    with _locked(device, "room", fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def device_for_timing(device: str) -> Iterator[None]:
    """Hold the device alone; nested calls in the same process return at once."""
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
    """Use much of the device's memory: as one of a few, or as the only one."""
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
    """Take a free place until the stack ends; return whether there was one."""
    try:
        stack.enter_context(_locked(device, place, fcntl.LOCK_EX | fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _locked(device: str, part: str, how: int) -> Iterator[None]:
    # Where several GPUs are assigned, each process sees its own as the first.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    name = re.sub(r"\W+", "-", f"{visible}-{device}-{part}")
    path = Path(tempfile.gettempdir()) / f"kerneltruth-{os.getuid()}-{name}.lock"
    with path.open("a") as lock:
        fcntl.flock(lock, how)
        try:
            yield
        finally:
            # Forked processes hold the file open too, so closing it is not enough.
            fcntl.flock(lock, fcntl.LOCK_UN)
