"""Define `tasks`, which lists what kernels can be judged on."""

from __future__ import annotations

from typing import Annotated

import typer

from kerneltruth.cli.application import app
from kerneltruth.cli.options import (
    AsJson,
    NoDevice,
    show_document,
)


@app.command()
def tasks(
    name: Annotated[str | None, typer.Argument(help="Show this task in full.")] = None,
    suite: Annotated[
        str | None, typer.Option("--suite", help="Only this; or kernelbench:PATH, flashinfer:PATH.")
    ] = None,
    as_json: AsJson = False,
    device: NoDevice = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Ignored.")] = 0,
) -> None:
    """List the tasks, or show one."""
    del device, seed
    from kerneltruth.report.tasks_view import tasks_view
    from kerneltruth.suites.listing import list_tasks

    show_document(list_tasks(name, suite), tasks_view, as_json)
