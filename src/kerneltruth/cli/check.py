"""Define `check`, which judges one kernel file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli.application import app
from kerneltruth.cli.options import (
    Annotations,
    AsJson,
    ContractOption,
    Device,
    DrawnSeed,
    JUnit,
    Out,
    RequireKernel,
    SearchedSuite,
    Strategies,
    Targets,
    TaskName,
    Timeout,
    export_outcomes,
    follow,
    settled_seed,
    show_document,
)
from kerneltruth.report import exit_codes


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="The kernel file to judge.")],
    task: TaskName = None,
    suite: SearchedSuite = None,
    dtype: Annotated[
        list[str] | None, typer.Option("--dtype", help="Only these dtypes (repeatable).")
    ] = None,
    strategy: Strategies = None,
    cases: Annotated[
        int | None,
        typer.Option(
            "--cases", min=1, help="Cases to judge (48, or more where the task promises more)."
        ),
    ] = None,
    bounds: Annotated[
        str, typer.Option("--bounds", help="spread, calibrated or fixed.")
    ] = "spread",
    tf32: Annotated[
        bool, typer.Option(help="Whether fp32 matrix products may use TF32, Triton's default.")
    ] = True,
    domain: Annotated[str, typer.Option("--domain", help="core or extended.")] = "extended",
    require_kernel: RequireKernel = False,
    contract: ContractOption = "core",
    target: Targets = None,
    junit: JUnit = None,
    annotations: Annotations = False,
    as_json: AsJson = False,
    device: Device = "auto",
    seed: DrawnSeed = None,
    out: Out = None,
    timeout: Timeout = 20.0,
) -> None:
    """Judge one kernel file."""
    from kerneltruth.engine.requests import CheckRequest
    from kerneltruth.engine.start import run
    from kerneltruth.report.verdict_view import check_view

    options = CheckRequest(
        file=file,
        task=task,
        suite=suite,
        dtypes=tuple(dtype or ()),
        strategies=tuple(strategy or ()),
        cases=cases,
        bounds=bounds,
        tf32=tf32,
        domain=domain,
        require_kernel=require_kernel,
        contract=contract,
        targets=tuple(target or ("sm_90",)),
        device=device,
        seed=settled_seed(seed, out),
        out=out,
        deadline_s=timeout,
    )
    document = follow(run(options), quiet=as_json)
    show_document(document, check_view, as_json)
    from kerneltruth.report.outcomes import of_check

    export_outcomes(
        lambda: of_check(document, file, device=device),
        junit=junit,
        annotations=annotations,
        as_json=as_json,
    )
    raise typer.Exit(exit_codes.of_check(document.verdict))
