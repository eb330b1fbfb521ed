"""Define `tasks`, which lists what kernels can be judged on."""

from __future__ import annotations

from typing import Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app


@app.command(name="tasks")
def tasks_(
    name: Annotated[str | None, typer.Argument(help="Show this task in full.")] = None,
    suite: Annotated[
        str | None, typer.Option("--suite", help="Only this; or kernelbench:PATH, flashinfer:PATH.")
    ] = None,
    tasks: options.TasksFile = None,
    reference: options.Reference = None,
    contract: options.ShownContract = None,
    as_json: options.AsJson = False,
    device: options.NoDevice = "auto",
    seed: options.NoSeed = 0,
) -> None:
    """List the tasks, or show one with its contract."""
    from kerneltruth.errors import UserError
    from kerneltruth.oracle.contract import DEFAULT_CONTRACT
    from kerneltruth.report.tasks_view import tasks_view
    from kerneltruth.suites.listing import list_tasks, show_task

    if name is None and contract is not None:
        raise UserError("--contract: it is shown of one task; name it: `kerneltruth tasks NAME`")
    chosen = options.chosen_suite(suite, tasks, reference)
    found = (
        list_tasks(chosen)
        if name is None
        else show_task(name, chosen, contract or DEFAULT_CONTRACT)
    )
    options.show_document(found, tasks_view, as_json)
