"""A judge in a process of its own, forked from this one, and a pipe to it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from kerneltruth.engine.scheduling.scheduler import J
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.sandbox import die_with_parent

R = TypeVar("R")

# Judges that must stop may work on their jobs for this long.
STOP_S = 5.0


class JudgeProcess(Generic[J, R]):
    """A judge process as the parent sees it."""

    def __init__(self, work: Callable[[J, Callable[[Any], None]], R]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, self.pipe, os.getpid(), work), daemon=True
        )
        self.process.start()
        theirs.close()
        self.job: J | None = None
        self.last_task: str | None = None

    def give(self, job: J) -> None:
        """Send it a job."""
        self.job, self.last_task = job, job.task
        self.pipe.send(job)

    def stop(self) -> None:
        """End it, after its job."""
        stop([self], STOP_S)

    def dismiss(self) -> None:
        """Tell it to end after its job."""
        # Judges forked later hold this pipe's end too, so closing it is no signal: send a message.
        with contextlib.suppress(OSError, ValueError):
            self.pipe.send(None)
            self.pipe.close()

    def end(self, seconds: float) -> None:
        """Wait at most this long for it to end."""
        self.process.join(timeout=seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def stop(judges: Sequence[JudgeProcess[Any, Any]], within_s: float) -> None:
    """Stop judges, all at once: each may be at work or waiting for the device."""
    for judge in judges:
        judge.dismiss()
    until = time.monotonic() + within_s
    for judge in judges:
        judge.end(max(0.0, until - time.monotonic()))


def _serve(
    pipe: Connection,
    parents_end: Connection,
    parent: int,
    work: Callable[[J, Callable[[Any], None]], R],
) -> None:
    """Run the judge's side: one job after the other until the parent says to stop."""
    # Judges forked later hold the parent's end of this pipe too, so its death closes nothing.
    die_with_parent(parent)
    # The parent answers Ctrl-C for all.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parents_end.close()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            job = pipe.recv()
            if job is None:
                break
            try:
                result = work(job, lambda news: pipe.send(("progress", news)))
            except (UserError, EnvironmentFault) as error:
                pipe.send(("stopped", error))
                continue
            except Exception as error:
                # Our own bug must reach the parent as one, with the place where it happened.
                import traceback

                pipe.send(("broken", f"{error}\n{traceback.format_exc()}"))
                continue
            pipe.send(("done", result))
    os._exit(0)
