"""Show progress of a long command on standard error: a bar on a terminal, lines in a pipe."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Generator
from typing import TypeVar

from kerneltruth.engine.requests import FileEnded, Step
from kerneltruth.report.harmless import harmless

LINE_EVERY_S = 5.0
BAR_WIDTH = 20

D = TypeVar("D")


def follow(
    steps: Generator[Step, None, D],
    *,
    quiet: bool,
    show: Callable[[FileEnded], None] = lambda step: None,
    line_every_s: float = LINE_EVERY_S,
) -> D:
    """Run the steps to their end and return the command's document.

    Args:
        steps: of the command.
        quiet: whether nothing is said of them.
        show: prints what has come of one of several files.
        line_every_s: in a pipe, seconds between two lines of ordinary steps at least.
    """
    if quiet:
        return _drive(steps, lambda step: None)
    if not sys.stderr.isatty():
        return _drive(steps, _lines(show, line_every_s))
    return _with_bar(steps, show)


def _drive(steps: Generator[Step, None, D], tell: Callable[[Step], None]) -> D:
    try:
        step = next(steps)
        while True:
            try:
                tell(step)
                step = next(steps)
            except KeyboardInterrupt as stop:
                # An interrupt may strike here; the command knows what to keep and what to end, and
                # may say so. A command that has ended passes the interrupt on.
                step = steps.throw(stop)
    except StopIteration as end:
        document: D = end.value
        return document


def _lines(
    show: Callable[[FileEnded], None], every_s: float = LINE_EVERY_S
) -> Callable[[Step], None]:
    lines = _Lines(every_s)
    return lambda step: show(step) if isinstance(step, FileEnded) else lines(step)


class _Lines:
    """Print a line for each notable step, and now and then one for the others."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._last = time.monotonic()

    def __call__(self, step: Step) -> None:
        if not step.notable and time.monotonic() - self._last < self._every_s:
            return
        self._last = time.monotonic()
        # The reader of progress may go away; judging continues.
        with contextlib.suppress(OSError):
            sys.stderr.write(harmless(f"{step.done}/{step.total} {step.text}\n"))
            sys.stderr.flush()


def _with_bar(steps: Generator[Step, None, D], show: Callable[[FileEnded], None]) -> D:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    console = Console(stderr=True)
    if console.is_dumb_terminal:
        return _drive(steps, _lines(show))
    columns = (
        BarColumn(bar_width=min(BAR_WIDTH, console.width // 4)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as progress:
        bar = progress.add_task("starting", total=None)

        def tell(step: Step) -> None:
            if isinstance(step, FileEnded):
                # The bar redirects standard output to its own stream.
                progress.stop()
                show(step)
                progress.start()
            elif step.notable:
                progress.console.print(harmless(step.text), markup=False, highlight=False)
            text = harmless(" ".join(step.text.split()))
            progress.update(bar, completed=step.done, total=step.total, description=text)

        return _drive(steps, tell)
