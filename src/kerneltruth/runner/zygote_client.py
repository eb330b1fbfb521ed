"""Manage a zygote from the host: start it, wait for it, have it fork, end it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.child_request import ChildRequest
from kerneltruth.runner.import_path import import_path
from kerneltruth.runner.link import Link
from kerneltruth.runner.sandbox import base_environment, remove_folder

_START_S = 180.0
_END_S = 20.0


class ZygoteLost(Exception):
    """The zygote is gone; another may be started."""


# Importing the compiler must start no processes.
_COMPILES = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}


class Zygote:
    """A warm process. It starts at once; `ready` waits for it."""

    def __init__(
        self,
        *,
        interpret: bool,
        hide_cuda: bool,
        work_root: Path | None,
        compiles: bool = False,
        built: Path | None = None,
        start_s: float = _START_S,
        command: Callable[[int, Path], list[str]] | None = None,
        popen: type[subprocess.Popen[bytes]] = subprocess.Popen,
    ) -> None:
        """Start it.

        It also imports what `torch.compile` needs if it compiles. `built` keeps Triton's access to
        the CUDA driver between runs; None leaves it to each child. It may take `start_s` seconds to
        start. `command` gives what is started with a socket's descriptor and a folder, and `popen`
        starts it.
        """
        self._start_s, self._command, self._popen = start_s, command or _command, popen
        environment = zygote_environment(interpret=interpret, hide_cuda=hide_cuda)
        options = ["--compiles"] if compiles else []
        options += ["--built", str(built)] if built is not None else []
        with _undisturbed():
            self._start(options, environment | (_COMPILES if compiles else {}), work_root)

    def _start(
        self, options: list[str], environment: dict[str, str], work_root: Path | None
    ) -> None:
        # An absolute path: the zygote's own working directory is this folder.
        self.root = Path(tempfile.mkdtemp(prefix="kerneltruth-", dir=work_root)).absolute()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, (self.root / "zygote.log").open("wb") as log:
            self._process = self._popen(
                [*self._command(theirs.fileno(), self.root), *options],
                # A killed zygote's leftovers go with its folder.
                env=environment | {"TMPDIR": str(self.root)},
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=(theirs.fileno(),),
                # Ctrl-C in the terminal is for the host, which ends its children itself.
                start_new_session=True,
            )
        self._control = ours
        self._versions: dict[str, str] | None = None
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(
            self, _shut_down, ours, self._process, self.root, os.getpid()
        )

    def ready(self) -> dict[str, str]:
        """Wait until it has imported everything; return the versions that it found.

        Raises:
            ZygoteLost: a signal ended it before.
            EnvironmentFault: it cannot start here.
        """
        with self._lock:
            if self._versions is None:
                self._versions = self._await_ready()
            return self._versions

    def fork(self, wanted: ChildRequest) -> Link:
        """Make it fork a child, in a folder within its own.

        Raises:
            ZygoteLost: it is gone.
        """
        self.ready()
        wire, their_wire = socket.socketpair()
        channel, their_channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output, their_output = os.pipe()
        request = msgspec.json.encode(replace(wanted, folder=str(self.root / wanted.folder)))
        theirs = [their_wire.fileno(), their_channel.fileno(), their_output]
        link = Link(wire, channel, output)
        try:
            with self._lock:
                socket.send_fds(self._control, [request], theirs)
        except OSError as error:
            link.close()
            raise ZygoteLost(str(error)) from error
        finally:
            their_wire.close()
            their_channel.close()
            os.close(their_output)
        return link

    def close(self) -> None:
        """End it with all that it started, and remove its folder."""
        self._finalizer()

    def _await_ready(self) -> dict[str, str]:
        end = time.monotonic() + self._start_s
        while not select.select([self._control], [], [], 0.5)[0]:
            if time.monotonic() > end:
                raise EnvironmentFault(
                    f"importing torch and Triton took over {self._start_s:.0f} s; try again when "
                    "this machine is less busy"
                )
        try:
            # The message stays, for judges forked from this process before it arrived.
            data = self._control.recv(4096, socket.MSG_PEEK)
        except OSError:
            data = b""
        if data:
            return {str(k): str(v) for k, v in json.loads(data)["ready"].items()}
        code = self._process.wait(_END_S)
        if code < 0:
            raise ZygoteLost(f"killed by signal {-code} while starting")
        log = (self.root / "zygote.log").read_text(errors="replace").strip()
        reason = log.splitlines()[-1] if log else f"exit code {code}"
        raise EnvironmentFault(f"cannot start candidate processes: {reason}")


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Defer SIGINT, so that a half-started zygote cannot leak."""
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


def _command(descriptor: int, root: Path) -> list[str]:
    module = "kerneltruth.runner.zygote"
    options = ["--socket-fd", str(descriptor), "--host", str(os.getpid()), "--root", str(root)]
    # Where people keep their work, and runs are written.
    options += ["--hidden", os.getcwd()]
    return [sys.executable, "-P", "-m", module, *options]


def zygote_environment(*, interpret: bool, hide_cuda: bool) -> dict[str, str]:
    """Return the variables for a process of this package's own, isolated from ours."""
    environment = base_environment(os.environ)
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    if hide_cuda:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    environment["PYTHONPATH"] = import_path()
    return environment


def _shut_down(
    control: socket.socket, process: subprocess.Popen[bytes], root: Path, owner: int
) -> None:
    """Runs once: on close, when the zygote is forgotten, or at the exit of the host."""
    if os.getpid() != owner:
        control.close()
        return
    # Its first message stays unread: it still imports without one, and has no children to end.
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
