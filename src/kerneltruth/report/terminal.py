"""Printing: as wide as the terminal, or lines without wrapping and padding in a pipe."""

from __future__ import annotations

import contextlib
import io
import os
import sys

from rich.console import Console, RenderableType

from kerneltruth.errors import EnvironmentFault

# Wide enough for any line: what reads a pipe wants a row to be one line.
PIPE_WIDTH = 100_000


def show(view: RenderableType) -> None:
    """Print a view on standard output."""
    if sys.stdout.isatty():
        Console(highlight=False, markup=False).print(view)
        return
    say(piped(view, sys.stdout.encoding or "utf-8"))


def say(text: str) -> None:
    """Write lines on standard output.

    A reader of our pipe that has gone, as with `| head`, is no error: the rest is dropped,
    and the exit code stays that of the verdict.

    Raises:
        EnvironmentFault: standard output cannot be written.
    """
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    except OSError as error:
        drop_output()
        raise EnvironmentFault(f"cannot write to standard output: {error.strerror}") from error


def drop_output() -> None:
    """Send what Python still holds for standard output, and writes at exit, nowhere."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class _Sink(io.StringIO):
    """Keeps what is printed, for an output of another encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """What rich asks, to know whether lines can be drawn."""
        return self._encoding


def piped(view: RenderableType, encoding: str = "utf-8") -> str:
    """A view's lines as a pipe gets them: not wrapped, and without trailing spaces."""
    sink = _Sink(encoding)
    Console(file=sink, width=PIPE_WIDTH, highlight=False, markup=False).print(view)
    lines = [line.rstrip() for line in sink.getvalue().split("\n")]
    return "\n".join(lines).strip("\n")
