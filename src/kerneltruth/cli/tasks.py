"""Define `tasks`, which lists what kernels can be judged on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app


@app.command(name="tasks")
def tasks_(
    name: Annotated[str | None, typer.Argument(help="Show this task in full.")] = None,
    suite: Annotated[
        str | None,
        typer.Option("--suite", help="Only this; or kernelbench:, flashinfer:, gpuemu:PATH."),
    ] = None,
    tasks: options.TasksFile = None,
    reference: options.Reference = None,
    declared_from: Annotated[
        Path | None,
        typer.Option("--from", help="Write a declaration of this reference, to be edited."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where --from writes; not replaced.")
    ] = None,
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

    if declared_from is not None:
        _declare(declared_from, out, as_json)
        return
    if out is not None:
        raise UserError("--out: only --from writes a file; name a reference with it")
    if name is None and contract is not None:
        raise UserError("--contract: it needs a task; name one: `kerneltruth tasks NAME`")
    chosen = options.chosen_suite(suite, tasks, reference)
    found = (
        list_tasks(chosen)
        if name is None
        else show_task(name, chosen, contract or DEFAULT_CONTRACT)
    )
    options.show_document(found, tasks_view, as_json)


def _declare(reference: Path, out: Path | None, as_json: bool) -> None:
    """Print or write the declaration of a reference."""
    from kerneltruth.errors import UserError
    from kerneltruth.suites.listing import declare

    if out is not None and out.exists():
        raise UserError(f"--out {out}: it exists; name a new file")
    found = declare(reference)
    text = str(found.declaration)
    if out is not None:
        try:
            out.write_text(text, "utf-8")
        except OSError as error:
            raise UserError(f"--out {out}: {error.strerror}; name a file in a folder") from error
    if as_json or out is None:
        options.show_document(found, lambda _: text.rstrip(), as_json)
