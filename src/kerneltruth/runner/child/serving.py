"""Serve the child's side of the wire: messages in, observations out, until the host hangs up."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import sys
from dataclasses import replace

from kerneltruth.runner import compile_cache
from kerneltruth.runner.arguments import Data
from kerneltruth.runner.child import failures, semaphores
from kerneltruth.runner.child.worker import Worker, make_context
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.protocol import Call, Load, Prepare, TimedStep, Unload
from kerneltruth.runner.shared_files import Receiver, taken
from kerneltruth.runner.timing.rehearsal import rehearse
from kerneltruth.runner.wire import decode, pieces

_LIMIT = 2**40
# Opening the C library again for each answer takes longer than flushing it.
_flush_c = ctypes.CDLL(None).fflush


def main(wire: int, mark: int | None) -> None:
    """Serve one host until it hangs up; the mark in the compile cache says when it is at work."""
    failures.keep_folder()
    semaphores.install()
    connection = socket.socket(fileno=wire)
    receiver = Receiver(connection)
    worker: Worker | None = None

    while True:
        try:
            message = taken(decode(receiver.read, limit=_LIMIT), receiver.descriptors)
        except EOFError:
            return
        compile_cache.at_work(mark)
        if isinstance(message, Prepare):
            # A failure here will recur, and be reported, when the candidate is loaded.
            with contextlib.suppress(Exception):
                make_context(message.device)
                rehearse(message.device)
            answer = Observation(ended="returned")
        elif isinstance(message, Load):
            worker = Worker(message)
            answer = worker.load()
        elif isinstance(message, Call) and worker is not None:
            answer = worker.call(message)
        elif isinstance(message, TimedStep | Unload) and worker is not None:
            answer = worker.time(message)
        else:
            answer = Observation(ended="lost", message="a call came before its load")
        if worker is not None and worker.lean:
            answer = replace(answer, lean=True)
        receiver.let_go()
        _flush()
        compile_cache.at_rest(mark)
        for piece in _encoded(answer):
            connection.sendall(piece)


def _encoded(answer: Observation) -> list[Data]:
    try:
        return pieces(answer)
    except (TypeError, ValueError) as error:
        return pieces(Observation(ended="lost", message=f"cannot encode the answer: {error}"))


def _flush() -> None:
    """Flush what the candidate printed, from Python and from C."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
    with contextlib.suppress(BaseException):
        _flush_c(None)
