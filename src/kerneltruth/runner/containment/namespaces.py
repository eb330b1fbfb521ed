"""Namespaces: no processes, network, shared memory or temporary files but a child's own.

The warden makes the namespace of processes (`enter`) and stays outside of it; the child, forked
next, makes the others and lays out what it sees (`settle`). Started by root, the child becomes
`nobody`; otherwise it stays the user, in a user namespace that gives it no rights outside.

The first process of a namespace ends all others with itself, and cannot be killed from within. Here
it is `cat`, which waits on a pipe that only the warden holds open: neither the child, whose
crashes would look different, nor a fork of the zygote, which would cost as much as the child.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from kerneltruth.runner import sandbox
from kerneltruth.runner.containment.landlock import READ_DIR
from kerneltruth.runner.containment.libc import checked, libc

# <linux/sched.h>, <sys/mount.h>
_NEW_MOUNTS, _NEW_IPC, _NEW_USER = 0x20000, 0x08000000, 0x10000000
_NEW_PROCESSES, _NEW_NETWORK = 0x20000000, 0x40000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 0x1, 0x2, 0x4, 0x8
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000

# Folders that are replaced, each with what is kept of it.
KeptFolders = tuple[tuple[Path, tuple[Path, ...]], ...]

NOBODY = 65534
# What root needs to run a child as another user: CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID
# and SYS_ADMIN. Root of a container may lack some.
_NEEDED = sum(1 << number for number in (0, 1, 3, 5, 6, 7, 21))

_END_S = 1.0

# Where a child finds its private folder and its compile cache.
FOLDER, CACHE = Path("/tmp"), Path("/tmp/cache")
SHARED_MEMORY = Path("/dev/shm")


@functools.cache
def own_user() -> int | None:
    """Return the user that children become; None where this process may not change its user."""
    if os.geteuid() != 0:
        return None
    lines = Path("/proc/self/status").read_text().splitlines()
    effective = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return NOBODY if effective & _NEEDED == _NEEDED else None


def enter() -> int:
    """Have the next processes that this one forks begin a namespace of processes.

    Return a descriptor: when no process holds it open any more, all in the namespace are killed.

    Raises:
        OSError: the system refuses, or has no `cat`.
    """
    first = shutil.which("cat")
    if first is None:
        raise OSError("namespaces: there is no `cat` on PATH to be their first process")
    if own_user() is None:
        _enter_as_user()
    _unshare(_NEW_PROCESSES)
    waiting, held = os.pipe()
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and os.path.exists(f"/proc/self/fd/{name}"):
            os.set_inheritable(int(name), False)
    # A program started with it ignored has its dead children reaped by the kernel.
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        os.posix_spawn(first, ["cat"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, waiting, 0)])
    finally:
        signal.signal(signal.SIGCHLD, before)
        os.close(waiting)
    return held


def end(held: int) -> None:
    """Have the system kill all in the namespace, and wait for that as long as it usually takes."""
    os.close(held)
    until = time.monotonic() + _END_S
    while not sandbox.reap()[1] and time.monotonic() < until:
        time.sleep(0.001)


def _enter_as_user() -> None:
    user, group = os.geteuid(), os.getegid()
    _unshare(_NEW_USER)
    said = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, text in said.items():
        try:
            Path("/proc/self", name).write_text(text)
        except OSError as error:
            what = f"namespaces: user {user} may not be named in one: {error.strerror}"
            raise OSError(error.errno, what) from error


def kept(rules: Iterable[tuple[str, int]]) -> KeptFolders:
    """Return which folders a child sees replaced, each with what stays in it, by its rules.

    These are /tmp, and folders that the child's user may not pass on the way to what it may read.
    """
    found: dict[Path, list[Path]] = {FOLDER: []}
    # A folder that may be listed alone is made on the way to what may be read in it.
    wanted = {Path(path) for path, rights in rules if rights != READ_DIR}
    for path in sorted(wanted):
        if path.exists() and wanted.isdisjoint(path.parents):
            above = FOLDER if FOLDER in path.parents else _closed(path)
            if above is not None:
                found.setdefault(above, []).append(path)
    return tuple((above, tuple(below)) for above, below in found.items())


def settle(folder: Path, cache: Path | None, keep: KeptFolders) -> None:
    """Give this process, the child, a network, /tmp and /proc of its own, and no shared memory.

    `folder` becomes /tmp, with the cache in it.

    Raises:
        OSError: the system refuses.
    """
    _unshare(_NEW_MOUNTS | _NEW_NETWORK | _NEW_IPC)
    # Otherwise the mounts below would appear outside, too.
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    shown = [(path, _opened(path)) for _, below in keep for path in below if path.exists()]
    shown += [(CACHE, _opened(cache))] if cache is not None else []
    own = _opened(folder)
    before = os.umask(0o022)
    for above, _ in keep:
        if above != FOLDER:
            _mount("tmpfs", above, "tmpfs", _NO_SUID | _NO_DEVICES, b"mode=755")
    for path, opened in ((FOLDER, own), *shown):
        _bind(opened, path)
    os.umask(before)
    no_files = _NO_SUID | _NO_DEVICES | _NO_PROGRAMS
    if SHARED_MEMORY.exists():
        _mount("tmpfs", SHARED_MEMORY, "tmpfs", no_files | _READ_ONLY)
    # Last, because descriptors are found in the outer one. It shows no process whose memory this
    # one may not read: not the namespace's first.
    _mount("proc", "/proc", "proc", no_files, b"hidepid=2")


def _closed(path: Path) -> Path | None:
    """Return the topmost folder on the way to a path that another user may not search."""
    if own_user() is None:
        return None
    above = reversed(path.parents)
    return next((each for each in above if not each.stat().st_mode & stat.S_IXOTH), None)


def _opened(path: Path) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _bind(opened: int, target: Path) -> None:
    """Show what is open at a path, which is made if it is not there."""
    if not target.exists():
        is_folder = stat.S_ISDIR(os.fstat(opened).st_mode)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.mkdir() if is_folder else target.touch()
    _mount(f"/proc/self/fd/{opened}", target, None, _BIND | _RECURSIVE)


def _mount(
    source: str | None,
    target: str | Path,
    kind: str | None,
    flags: int,
    options: bytes | None = None,
) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    checked(f"mount {target}", libc().mount(*encoded, flags, options))


def _unshare(flags: int) -> None:
    checked("namespaces", libc().unshare(flags))
