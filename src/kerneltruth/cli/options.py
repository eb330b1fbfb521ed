"""Options that several commands share, and how a command runs and prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", min=0, max=2**64 - 1, metavar="N", help="Master seed of every random stream."
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Run directory; an unfinished one is resumed.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Judge processes; default: one per core.")
]
FindingsSuite = Annotated[
    str | None,
    typer.Option("--suite", help="kernelbench:PATH or the like, if not where it was judged."),
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.1, help="Seconds allowed for one call of a kernel.")
]


def follow(steps: Any, *, quiet: bool) -> dict[str, Any]:
    """Drive a command's events to its document, with progress on standard error."""
    from kerneltruth.report.progress import follow

    return follow(steps, quiet=quiet)


def show_document(
    document: dict[str, Any], view: Callable[[dict[str, Any]], Any], as_json: bool
) -> None:
    """Print a command's document: as JSON, or as its view."""
    from kerneltruth.report.terminal import say, show

    if as_json:
        from kerneltruth.codec import dumps

        say(dumps(document))
    else:
        show(view(document))
