"""Give a user's own file a deadline: one that never ends would keep a judge waiting."""

from __future__ import annotations

import contextvars
import ctypes
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import TypeVar

from kerneltruth.errors import UserError

_T = TypeVar("_T")


def within(seconds: float, call: Callable[[], _T], *, path: Path, line: int, what: str) -> _T:
    """Return what a call returns, or raise what it raises.

    The call runs on a thread of its own, since only a main thread could use a signal. One that is
    late is ended as soon as it next runs a line of Python.

    Args:
        seconds: that it may take.
        call: of the file's code.
        path: the file.
        line: to name where no line of the file runs.
        what: takes that long, for the message.

    Raises:
        UserError: it takes longer; with the file's line that runs.
    """
    answer: Future[_T] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    thread = Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
    thread.start()
    try:
        thread.join(seconds)
    finally:
        # Also if the user does not wait for the deadline.
        at = _line_that_runs(thread, path) or line
        late = _end(thread)
    if late:
        raise UserError(
            f"{path}:{at}: {what} takes longer than {seconds:g} s; end its loop, or let it compute "
            "less"
        )
    return answer.result()


def _line_that_runs(thread: Thread, path: Path) -> int | None:
    frame: FrameType | None = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code.co_filename != str(path.absolute()):
        frame = frame.f_back
    return None if frame is None else frame.f_lineno


def _end(thread: Thread) -> bool:
    """Raise SystemExit in a thread, and return whether it ran."""
    running = thread.is_alive()
    if running:
        ident = ctypes.c_ulong(thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(SystemExit))
    return running
