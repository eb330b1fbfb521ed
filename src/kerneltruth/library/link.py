"""The caller's end: starts a server, sends questions, and completes a future for each answer.

No torch here. Nothing of the caller changes: no signal handler, no environment, no fork without
exec. A thread reads answers while there are open questions, and ends with the last of them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from concurrent.futures import Future, InvalidStateError
from multiprocessing.connection import Connection
from typing import IO, Any

from kerneltruth.documents.model import dumps
from kerneltruth.errors import EnvironmentFault, InternalError, KernelTruthError, UserError
from kerneltruth.library.messages import (
    Ask,
    Cancel,
    Checked,
    CheckMessage,
    QuestionRefused,
    Ready,
    ServerAnswer,
    Settings,
    Timed,
    TimeMessage,
    answer_in,
    encoded,
)
from kerneltruth.library.wording import as_argument
from kerneltruth.runner.import_path import import_path

_START_S = 60.0
_END_S = 10.0
_FAULTS = {"user": UserError, "environment": EnvironmentFault, "internal": InternalError}


class ServerLink:
    """One server, and the questions that it has not answered yet; threads may share it.

    Attributes:
        devices: of the server, such as `cpu` or `cuda:0`.
        workers: how many questions it answers at once.
    """

    def __init__(
        self, devices: tuple[str, ...], workers: int | None, targets: tuple[str, ...]
    ) -> None:
        """Start a server, and wait until it has its devices; it warms up meanwhile.

        Raises:
            UserError: a device of another spelling.
            EnvironmentFault: there is no such device, or no server can be started.
        """
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._open: dict[int, Future[Checked | Timed]] = {}
        self._numbers = itertools.count()
        self._reader: threading.Thread | None = None
        # Closed with the server.
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        settings = Settings(devices=devices, workers=workers, targets=targets, host=self._pid)
        ours, self._process = _started(settings, self._log)
        self._pipe = Connection(os.dup(ours.fileno()))
        self._end = weakref.finalize(self, _shut_down, ours, self._process, self._log, self._pid)
        try:
            ready = self._await_ready()
        except BaseException:
            self.close()
            raise
        self.devices, self.workers = ready.devices, ready.workers

    @property
    def usable(self) -> bool:
        """Whether questions can be asked: in the process that made it, while the server lives."""
        mine = self._end.alive and os.getpid() == self._pid
        return mine and self._process.poll() is None

    def ask(self, about: CheckMessage | TimeMessage) -> Future[Checked | Timed]:
        """Send a question; return the future of its answer. Cancelling it tells the server.

        Raises:
            EnvironmentFault: the server is gone.
        """
        future: Future[Checked | Timed] = Future()
        number = next(self._numbers)
        question = encoded(Ask(number=number, about=about))
        with self._lock:
            self._open[number] = future
            if self._reader is None:
                self._reader = threading.Thread(
                    target=self._read, name="kerneltruth-answers", daemon=True
                )
                self._reader.start()
        self._send(question)
        future.add_done_callback(lambda done: self._forget(number) if done.cancelled() else None)
        return future

    def close(self) -> None:
        """End the server; open questions get an error."""
        self._end()
        if os.getpid() == self._pid:
            self._fail(_closed())

    def _await_ready(self) -> Ready:
        try:
            if not self._pipe.poll(_START_S):
                raise EnvironmentFault(
                    f"the judging server did not start within {_START_S:.0f} s; "
                    "`kerneltruth doctor` says what this machine lacks"
                )
            first = answer_in(self._pipe.recv_bytes())
        except (EOFError, OSError) as error:
            raise EnvironmentFault(f"the judging server cannot start: {self._said()}") from error
        if isinstance(first, QuestionRefused):
            raise _error(first)
        assert isinstance(first, Ready)
        return first

    def _send(self, question: bytes) -> None:
        try:
            with self._sending:
                self._pipe.send_bytes(question)
        except OSError as error:
            raise self._lost() from error
        except BaseException:
            # Half a message may be on its way, after which no other can be read.
            self._lost()
            raise

    def _forget(self, number: int) -> None:
        """Tell the server that nobody waits for an answer."""
        with self._lock:
            known = self._open.pop(number, None)
        if known is not None and self.usable:
            with contextlib.suppress(KernelTruthError):
                self._send(encoded(Cancel(number=number)))

    def _read(self) -> None:
        """Complete futures until no question is open."""
        while True:
            try:
                answer = answer_in(self._pipe.recv_bytes())
            except (EOFError, OSError):
                self._lost()
                return
            except KernelTruthError as error:
                self._fail(InternalError(f"the judging server sent what cannot be read: {error}"))
                return
            if self._completed(answer):
                return

    def _completed(self, answer: ServerAnswer) -> bool:
        """Complete a future; return whether it was the last one."""
        number = getattr(answer, "number", None)
        with self._lock:
            future = None if number is None else self._open.pop(number, None)
            last = not self._open
            if last:
                self._reader = None
        if future is not None:
            _complete(future, answer)
        return last

    def _lost(self) -> KernelTruthError:
        """End the server that does not answer; open questions get the reason, which is returned."""
        fault = self._gone() if self._end.alive else _closed()
        self._end()
        self._fail(fault)
        return fault

    def _fail(self, error: Exception) -> None:
        with self._lock:
            futures = list(self._open.values())
            self._open.clear()
            self._reader = None
        for future in futures:
            with contextlib.suppress(InvalidStateError):
                future.set_exception(error)

    def _gone(self) -> EnvironmentFault:
        return EnvironmentFault(f"the judging server is gone: {self._said()}; make a new Judge")

    def _said(self) -> str:
        """Return how the server ended: by a signal, or with the last line that it wrote."""
        code = self._process.poll()
        if code is not None and code < 0:
            return f"killed by {signal.Signals(-code).name}"
        with contextlib.suppress(OSError, ValueError):
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").strip().splitlines()
            if lines:
                return lines[-1][:300]
        return "it said nothing"


def _complete(future: Future[Checked | Timed], answer: ServerAnswer) -> None:
    # The caller may have cancelled it meanwhile.
    with contextlib.suppress(InvalidStateError):
        if isinstance(answer, QuestionRefused):
            future.set_exception(_error(answer))
        elif isinstance(answer, Checked | Timed):
            future.set_result(answer)


def _closed() -> UserError:
    return UserError("the Judge was closed before the answer came; keep it open until then")


def _error(refused: QuestionRefused) -> KernelTruthError:
    return _FAULTS[refused.fault](as_argument(refused.reason))


def _started(settings: Settings, log: IO[bytes]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-P", "-m", "kerneltruth.library.server"]
        process = subprocess.Popen(
            [*command, str(theirs.fileno()), dumps(settings)],
            env={**os.environ, "PYTHONPATH": import_path(), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            pass_fds=(theirs.fileno(),),
            # Ctrl-C in the terminal is for the caller, which ends its server itself.
            start_new_session=True,
        )
    return ours, process


def _shut_down(
    ours: socket.socket, process: subprocess.Popen[Any], log: IO[bytes], owner: int
) -> None:
    """Runs once: on close, when the link is forgotten, or at the exit of the caller."""
    log.close()
    if os.getpid() != owner:
        # A forked child: the server is its parent's.
        process.returncode = 0
        ours.close()
        return
    # Reaches the server even while forked children hold copies of this end.
    with contextlib.suppress(OSError):
        ours.shutdown(socket.SHUT_RDWR)
    ours.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
