"""Apply each level of containment in a process of its own, and try to break out of it.

`python -m kerneltruth.runner.containment.probe` prints the best level that holds, why it is no
more, and the version of Landlock, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from kerneltruth.runner.containment import LEVELS, Level, applying, files, landlock

# The first version that keeps a file from being cut off by its path, and allows renaming.
LEAST_ABI = 3
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
    if level == "strict" and version == 0:
        return "this kernel has no Landlock, or it is turned off (Linux 6.2 or newer has it)"
    if level == "strict" and version < LEAST_ABI:
        return f"Landlock is of version {version}, and {LEAST_ABI} is needed (Linux 6.2 or newer)"
    with tempfile.TemporaryDirectory() as outside:
        (Path(outside) / "secret").write_text("secret")
        (Path(outside) / "own").mkdir()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.write(writer, _attempts(level, Path(outside)).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as said:
            trouble = said.read()
        died = os.waitpid(child, 0)[1] != 0
        return trouble or ("a contained process dies" if died else None)


def _attempts(level: Level, outside: Path) -> str:
    """Contain this process and try it; return what is wrong, or nothing."""
    own, parent = outside / "own", os.getppid()
    try:
        shared = files.shared(os.environ, hidden=(), gpu=False)
        rules = landlock.merged(shared, files.private((own,), ()))
        applying.contain(level, rules, gpu=False)
        _works(own)
    except OSError as error:
        return str(error)
    broken = [name for name, attempt in _breakouts(level, outside, parent) if _done(attempt)]
    return f"a contained process could {', '.join(broken)}" if broken else ""


def _works(own: Path) -> None:
    """Do what honest candidates do.

    Raises:
        OSError: it is refused.
    """
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
    if level == "strict":
        secret = outside / "secret"
        yield "read a file", secret.read_text
        yield "write to a file", lambda: secret.open("a").close()
        yield "cut off a file", lambda: os.truncate(secret, 0)
        yield "make a file", (outside / "new").touch
        yield "remove a file", secret.unlink
        yield "list a folder", lambda: os.listdir(outside)
        yield "read another's command line", Path(f"/proc/{parent}/cmdline").read_text


if __name__ == "__main__":
    main()
