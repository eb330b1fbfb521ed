"""A candidate's compile cache, which a child that was killed at work must not spoil for the next.

Compilers write some results in place and hold locks that are files, so a child that is killed while
it compiles leaves half a library, or a lock that nothing opens. Each child has a mark in the cache:
an empty file that it holds locked while it lives, with the time at which its current work began, or
0 while it has none.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kerneltruth.runner.sandbox import remove_folder

_MARK = ".child-"


def enter(cache: Path, user: int | None = None) -> int | None:
    """Return the open mark of a new child in the cache; make the cache if there is none.

    A cache in which a dead child may have left half a file is dropped, and so is one of another
    user than the child's, by default this process's. The child needs another place, and this
    returns None, if others still use such a cache, or where no mark can be made.
    """
    with contextlib.suppress(OSError), _alone(cache.parent):
        user = os.geteuid() if user is None else user
        cache.mkdir(mode=0o700, exist_ok=True)
        dead, used = [], False
        # A change of owner could give away another's file that is linked there, so it is dropped.
        spoiled = any(cache.iterdir()) and cache.stat().st_uid != user
        for path in cache.glob(f"{_MARK}*"):
            if _is_held(path):
                used = True
            else:
                dead.append(path)
                spoiled |= _was_writing(path, cache)
        if spoiled and used:
            return None
        if spoiled:
            remove_folder(cache)
            cache.mkdir(mode=0o700)
        os.chown(cache, user, -1)
        for path in dead:
            path.unlink(missing_ok=True)
        mark, _ = tempfile.mkstemp(prefix=_MARK, dir=cache)
        os.fchown(mark, user, -1)
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        at_rest(mark)
        return mark
    return None


def at_work(mark: int | None) -> None:
    """Note that the child of this mark begins to work: it may write to its cache."""
    # The candidate may have closed it, which harms its own cache only.
    if mark is not None:
        with contextlib.suppress(OSError):
            os.utime(mark)


def at_rest(mark: int | None) -> None:
    """Note that the child of this mark has done its work: what it has written is whole."""
    if mark is not None:
        with contextlib.suppress(OSError):
            os.utime(mark, (0, 0))


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Hold the lock of all caches in a folder."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (root / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_held(mark: Path) -> bool:
    # The candidate may have put a pipe there, whose opening waits, or a link.
    descriptor = os.open(mark, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _was_writing(mark: Path, cache: Path) -> bool:
    """Return whether any file of the cache changed in or after the time at which work began."""
    since = mark.lstat().st_mtime_ns
    if since == 0:
        return False
    return any(
        os.lstat(os.path.join(folder, name)).st_ctime_ns >= since
        for folder, _, names in os.walk(cache)
        for name in names
        if not name.startswith(_MARK)
    )
