"""Start a process of this package's own beside the judge, wait for it, send to it, end it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.sandbox import remove_folder

START_S = 180.0
_END_S = 20.0

# What is started, given a socket's descriptor and a folder.
Command = Callable[[int, Path], list[str]]


class HelperLost(Exception):
    """The process is gone; another may be started."""


class HelperProcess:
    """A process that says when it is ready. It starts at once; `ready` waits for it.

    Attributes:
        root: its folder, which is removed with it.
        cannot: what the judge says if it ends before it is ready.
        slow: what the judge says if it takes longer than it may.
    """

    cannot = "cannot start a process"
    slow = "starting a process took over {:.0f} s; try again when this machine is less busy"

    def __init__(
        self,
        command: Command,
        environment: Mapping[str, str],
        work_root: Path | None,
        *,
        start_s: float = START_S,
        popen: type[subprocess.Popen[bytes]] = subprocess.Popen,
    ) -> None:
        """Start it by `popen`; it may take `start_s` seconds until it is ready."""
        self._start_s = start_s
        with _undisturbed():
            # An absolute path: the process's own working directory is this folder.
            self.root = Path(tempfile.mkdtemp(prefix="kerneltruth-", dir=work_root)).absolute()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs, (self.root / "log").open("wb") as log:
                self._process = popen(
                    command(theirs.fileno(), self.root),
                    # A killed process's leftovers go with its folder.
                    env={**environment, "TMPDIR": str(self.root)},
                    cwd=self.root,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    pass_fds=(theirs.fileno(),),
                    # Ctrl-C in the terminal is for the host, which ends its children itself.
                    start_new_session=True,
                )
            self._control = ours
            self._said: dict[str, str] | None = None
            self._lock = threading.Lock()
            self._finalizer = weakref.finalize(
                self, _shut_down, ours, self._process, self.root, os.getpid()
            )

    def ready(self) -> dict[str, str]:
        """Wait until it is ready; return what it says then.

        Raises:
            HelperLost: a signal ended it before.
            EnvironmentFault: it cannot start here.
        """
        with self._lock:
            if self._said is None:
                self._said = self._await_ready()
            return self._said

    def send(self, message: object, descriptors: Sequence[int]) -> None:
        """Send it a message, as JSON, with descriptors.

        Raises:
            HelperLost: it is gone.
        """
        try:
            with self._lock:
                socket.send_fds(self._control, [msgspec.json.encode(message)], descriptors)
        except OSError as error:
            raise HelperLost(str(error)) from error

    def close(self) -> None:
        """End it with all that it started, and remove its folder."""
        self._finalizer()

    def _await_ready(self) -> dict[str, str]:
        end = time.monotonic() + self._start_s
        while not select.select([self._control], [], [], 0.5)[0]:
            if time.monotonic() > end:
                raise EnvironmentFault(self.slow.format(self._start_s))
        try:
            # The message stays, for judges forked from this process before it arrived.
            data = self._control.recv(4096, socket.MSG_PEEK)
        except OSError:
            data = b""
        if data:
            return {str(k): str(v) for k, v in json.loads(data)["ready"].items()}
        code = self._process.wait(_END_S)
        if code < 0:
            raise HelperLost(f"killed by signal {-code} while starting")
        log = (self.root / "log").read_text(errors="replace").strip()
        reason = log.splitlines()[-1] if log else f"exit code {code}"
        raise EnvironmentFault(f"{self.cannot}: {reason}")


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Defer SIGINT, so that a half-started process cannot leak."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda signum, frame: came.append(signum))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _shut_down(
    control: socket.socket, process: subprocess.Popen[bytes], root: Path, owner: int
) -> None:
    """Runs once: on close, when the process is forgotten, or at the exit of the host."""
    if os.getpid() != owner:
        control.close()
        return
    # Its first message stays unread: it still starts without one, and has no children to end.
    starting = not select.select([control], [], [], 0)[0]
    control.close()
    if starting:
        process.kill()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    remove_folder(root)
