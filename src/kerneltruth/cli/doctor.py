"""Define `doctor`, which shows what this machine can do."""

from __future__ import annotations

from typing import Annotated

import typer

from kerneltruth.cli.application import app
from kerneltruth.cli.options import (
    AsJson,
    show_document,
)


@app.command()
def doctor(
    as_json: AsJson = False,
    device: Annotated[str, typer.Option("--device", help="Ignored: all are shown.")] = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Ignored.")] = 0,
) -> None:
    """Show what this machine can do, what is missing, and how to add it."""
    del device, seed
    from kerneltruth.engine.doctor import examine
    from kerneltruth.report.tasks_view import doctor_view

    show_document(examine(), doctor_view, as_json)
