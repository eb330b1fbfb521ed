"""Wait for the threads that a call leaves behind: they may still write to what it returned."""

from __future__ import annotations

import os
import threading
import time

# Long enough for a thread that fills a result late; those that stay, as PyTorch's do, cost it once.
WAIT_S = 0.1
_STEP_S = 0.002
# Looked up before a candidate could replace them.
_monotonic, _sleep, _listdir = time.monotonic, time.sleep, os.listdir
_active = threading.active_count


def count() -> int:
    """Return how many threads this process has."""
    return len(_listdir("/proc/self/task"))


def of_python() -> int:
    """Return how many threads of Python there are beside this one; PyTorch's own are not."""
    return _active() - 1


def waited(before: int) -> bool:
    """Wait until there are no more threads than before, or a while; return whether there were."""
    if count() <= before:
        return False
    until = _monotonic() + WAIT_S
    while count() > before and _monotonic() < until:
        _sleep(_STEP_S)
    return True
