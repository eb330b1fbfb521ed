"""Define `doctor`, which shows what this machine can do."""

from __future__ import annotations

from typing import Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app


@app.command()
def doctor(
    as_json: options.AsJson = False,
    device: Annotated[str, typer.Option("--device", help="Ignored: all are shown.")] = "auto",
    seed: options.NoSeed = 0,
) -> None:
    """Show what this machine can do, what is missing, and how to add it."""
    from kerneltruth.engine.doctor import examine
    from kerneltruth.report.tasks_view import doctor_view

    options.show_document(examine(), doctor_view, as_json)
