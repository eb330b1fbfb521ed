"""Define `tasks`, which lists what kernels can be judged on."""

from __future__ import annotations

from typing import Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app


@app.command()
def tasks(
    name: Annotated[str | None, typer.Argument(help="Show this task in full.")] = None,
    suite: Annotated[
        str | None, typer.Option("--suite", help="Only this; or kernelbench:PATH, flashinfer:PATH.")
    ] = None,
    as_json: options.AsJson = False,
    device: options.NoDevice = "auto",
    seed: options.NoSeed = 0,
) -> None:
    """List the tasks, or show one."""
    from kerneltruth.report.tasks_view import tasks_view
    from kerneltruth.suites.listing import list_tasks

    options.show_document(list_tasks(name, suite), tasks_view, as_json)
