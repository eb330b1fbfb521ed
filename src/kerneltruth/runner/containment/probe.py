"""Apply each level of containment in a process of its own, and try to break out of it.

`python -m kerneltruth.runner.containment.probe` prints the best level that holds, why it is no
more, and the version of Landlock, as JSON.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kerneltruth.runner import sandbox
from kerneltruth.runner.containment import LEVELS, Level, applying, files, landlock, namespaces

# The first version that keeps a file from being cut off by its path, and allows renaming.
LEAST_ABI = 3
# What a child must still be able to read, wherever it is installed.
_IMPORTED = ("ctypes", "torch", "kerneltruth.runner.wire")
_LEFT_BEHIND_S = 5.0
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def main() -> None:
    """Print what holds here."""
    version = landlock.abi()
    limited_by: str | None = None
    for level in reversed(LEVELS):
        trouble = _tried(level, version)
        if trouble is None:
            sys.stdout.write(json.dumps([level, limited_by, version]))
            return
        limited_by = limited_by or trouble


def _tried(level: Level, version: int) -> str | None:
    """Return what is wrong with a level here; None if it holds."""
    if level == "process":
        return None
    needs_landlock = level in ("strict", "namespaces")
    if needs_landlock and version == 0:
        return "this kernel has no Landlock, or it is turned off (Linux 6.2 or newer has it)"
    if needs_landlock and version < LEAST_ABI:
        return f"Landlock is of version {version}, and {LEAST_ABI} is needed (Linux 6.2 or newer)"
    with tempfile.TemporaryDirectory() as outside:
        (Path(outside) / "secret").write_text("secret")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            tried = _apart if level == "namespaces" else _try
            os._exit(tried(level, Path(outside), writer))
        os.close(writer)
        with os.fdopen(reader) as said:
            trouble = said.read()
        died = os.waitpid(child, 0)[1] != 0
        return trouble or ("a contained process dies" if died else None)


def _apart(level: Level, outside: Path, writer: int) -> int:
    """Be the warden of a process in namespaces, and end them; return that process's exit code."""
    try:
        held = namespaces.enter()
    except OSError as error:
        os.write(writer, str(error).encode())
        return 0
    child = os.fork()
    if child == 0:
        os.close(held)
        os._exit(_try(level, outside, writer))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _try(level: Level, outside: Path, writer: int) -> int:
    """Contain this process and try it; say what is wrong, or nothing."""
    own, other, alone = outside / "own", os.getppid(), level == "namespaces"
    user = namespaces.own_user() if alone else None
    try:
        shared = files.shared(os.environ, hidden=(), gpu=False)
        sandbox.make_folders(own, user)
        if alone:
            namespaces.settle(own, None, namespaces.kept(shared))
            own, other = namespaces.FOLDER, 1
        rules = landlock.merged(shared, files.private((own,), (), alone=alone))
        applying.contain(level, rules, gpu=False, user=user)
        _works(own)
    except OSError as error:
        os.write(writer, str(error).encode())
        return 0
    attempts = [*_breakouts(level, outside, other), *(_from_namespaces(user) if alone else ())]
    broken = [name for name, attempt in attempts if _done(attempt)]
    if broken:
        os.write(writer, f"a contained process could {', '.join(broken)}".encode())
    if alone and os.fork() == 0:
        os.setsid()
        time.sleep(_LEFT_BEHIND_S)
        os.write(writer, b"a contained process could outlive its warden")
    return 0


def _works(own: Path) -> None:
    """Do what honest candidates do.

    Raises:
        OSError: it is refused.
    """
    for name in _IMPORTED:
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:
            Path(found.origin).read_bytes()
    (own / "a").mkdir()
    (own / "a" / "file").write_text("x" * 10)
    (own / "a" / "file").rename(own / "file")
    os.truncate(own / "file", 5)
    Path("/proc/self/status").read_text()
    Path("/dev/null").write_text("x")
    socket.socketpair()[0].close()
    if os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-S", "-c", ""]) != 0:
        raise OSError("a contained process can start no other")


def _done(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def _breakouts(
    level: Level, outside: Path, parent: int
) -> Iterator[tuple[str, Callable[[], object]]]:
    libc = ctypes.CDLL(None, use_errno=True)

    def unshare(flags: int) -> None:
        if libc.unshare(flags) != 0:
            raise OSError(ctypes.get_errno(), "unshare")

    yield "open a socket", lambda: socket.socket().close()
    yield "send signals to others", lambda: os.kill(parent, 0)
    yield "make a namespace", lambda: unshare(_CLONE_NEWUSER)
    yield "see another's network", lambda: unshare(_CLONE_NEWNET)
    yield "read another's memory", lambda: os.close(os.open(f"/proc/{parent}/mem", os.O_RDONLY))
    if level in ("strict", "namespaces"):
        secret = outside / "secret"
        yield "read a file", secret.read_text
        yield "write to a file", lambda: secret.open("a").close()
        yield "cut off a file", lambda: os.truncate(secret, 0)
        yield "make a file", (outside / "new").touch
        yield "remove a file", secret.unlink
        yield "list a folder", lambda: os.listdir(outside)
        yield "read another's command line", Path(f"/proc/{parent}/cmdline").read_text


def _from_namespaces(user: int | None) -> Iterator[tuple[str, Callable[[], object]]]:
    def seen(anything: object) -> None:
        if not anything:
            raise OSError("nothing there")

    others = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}
    networks = {line.split()[0] for line in Path("/proc/net/dev").read_text().splitlines()[2:]}
    yield "see other processes", lambda: seen(others)
    yield "see networks", lambda: seen(networks - {"lo:"})
    yield "share memory", (namespaces.SHARED_MEMORY / "made").touch
    yield "stay root", lambda: seen(user is not None and user not in os.getresuid())


if __name__ == "__main__":
    main()
