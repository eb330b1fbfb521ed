"""Print as wide as the terminal, or without wrapping and padding in a pipe."""

from __future__ import annotations

import contextlib
import io
import os
import sys

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from kerneltruth.errors import EnvironmentFault
from kerneltruth.report.harmless import harmless

# Wide enough for any line: tools that read a pipe expect one row per line.
PIPE_WIDTH = 100_000


def show(view: RenderableType) -> None:
    """Print a view on standard output."""
    if sys.stdout.isatty():
        # Lines that must not wrap are longer than the terminal; it breaks them itself.
        Console(highlight=False, markup=False).print(_Harmless(view), crop=False)
        return
    say(piped(view, sys.stdout.encoding or "utf-8"))


def say(text: str) -> None:
    """Write lines on standard output.

    If the reader of our pipe has gone, as with `| head`, the rest is dropped and the exit code
    stays that of the verdict.

    Raises:
        EnvironmentFault: standard output cannot be written.
    """
    try:
        sys.stdout.write(harmless(text) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
    except OSError as error:
        drop_output()
        raise EnvironmentFault(f"cannot write to standard output: {error.strerror}") from error


def drop_output() -> None:
    """Redirect what Python still holds for standard output to nowhere; it is written at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class _Harmless:
    """A view whose text a terminal does not obey, whoever has written it."""

    def __init__(self, view: RenderableType) -> None:
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._view, options):
            if segment.control:
                yield segment
            else:
                yield Segment(harmless(segment.text), segment.style)


class _Sink(io.StringIO):
    """Collects what is printed, for an output of another encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Rich reads this to decide whether it can draw lines."""
        return self._encoding


def piped(view: RenderableType, encoding: str = "utf-8") -> str:
    """Return a view's lines for a pipe: not wrapped, without trailing spaces."""
    sink = _Sink(encoding)
    Console(file=sink, width=PIPE_WIDTH, highlight=False, markup=False).print(view)
    lines = [line.rstrip() for line in sink.getvalue().split("\n")]
    return "\n".join(lines).strip("\n")
