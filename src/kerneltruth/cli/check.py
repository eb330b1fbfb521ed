"""Define `check`, which judges one kernel file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app
from kerneltruth.report import exit_codes

File = Annotated[Path, typer.Argument(help="The kernel file to judge.")]
Dtypes = Annotated[
    list[str] | None, typer.Option("--dtype", help="Only these dtypes (repeatable).")
]
Cases = Annotated[
    int | None,
    typer.Option(
        "--cases", min=1, help="Cases to judge (48, or more where the task promises more)."
    ),
]
Bounds = Annotated[str, typer.Option("--bounds", help="spread, calibrated or fixed.")]
Tf32 = Annotated[
    bool, typer.Option(help="Whether fp32 matrix products may use TF32, Triton's default.")
]
DomainName = Annotated[str, typer.Option("--domain", help="core or extended.")]


@app.command()
def check(
    file: File,
    task: options.TaskName = None,
    suite: options.SearchedSuite = None,
    tasks: options.TasksFile = None,
    reference: options.Reference = None,
    entry: options.Entry = None,
    dtypes: Dtypes = None,
    strategies: options.Strategies = None,
    cases: Cases = None,
    bounds: Bounds = "spread",
    tf32: Tf32 = True,
    domain: DomainName = "extended",
    require_kernel: options.RequireKernel = False,
    contract: options.ContractName = "core",
    targets: options.Targets = None,
    junit: options.JUnit = None,
    annotations: options.Annotations = False,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    seed: options.DrawnSeed = None,
    out: options.Out = None,
    deadline_s: options.Timeout = 20.0,
) -> None:
    """Judge one kernel file."""
    given = locals()
    from kerneltruth.engine.requests import CheckRequest
    from kerneltruth.engine.start import run
    from kerneltruth.report.outcomes import of_check
    from kerneltruth.report.verdict_view import check_view

    asked = options.request(CheckRequest, given, seed=options.settled_seed(seed, out))
    document = options.follow(run(asked), quiet=as_json)
    options.show_document(document, check_view, as_json)
    options.export_outcomes(lambda: of_check(document, file, device=device), given)
    raise typer.Exit(exit_codes.of_check(document.verdict))
