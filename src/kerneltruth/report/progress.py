"""Progress of a long command on standard error: a bar on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from typing import Any

from kerneltruth.commands.step import Step

LINE_EVERY_S = 5.0

Steps = Generator[Step, None, dict[str, Any]]


def follow(steps: Steps, *, quiet: bool) -> dict[str, Any]:
    """Drive the steps to their end; returns the command's document."""
    if quiet:
        return _silently(steps)
    return _with_bar(steps) if sys.stderr.isatty() else _with_lines(steps)


def _silently(steps: Steps) -> dict[str, Any]:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return _document(end)


def _with_lines(steps: Steps) -> dict[str, Any]:
    last = time.monotonic()
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return _document(end)
        if step.notable or time.monotonic() - last >= LINE_EVERY_S:
            last = time.monotonic()
            sys.stderr.write(f"{step.done}/{step.total} {step.text}\n")
            sys.stderr.flush()


def _with_bar(steps: Steps) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=None)
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return _document(end)
            if step.notable:
                progress.console.print(step.text, markup=False, highlight=False)
            progress.update(bar, completed=step.done, total=step.total, description=step.text[:60])


def _document(end: StopIteration) -> dict[str, Any]:
    document: dict[str, Any] = end.value
    return document
