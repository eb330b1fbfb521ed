"""Define `run`, which judges many candidates in stages."""

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
    Strategies,
    Timeout,
    Workers,
    export_outcomes,
    follow,
    settled_seed,
    show_document,
)
from kerneltruth.report import exit_codes


@app.command(name="run")
def run_(
    candidates: Annotated[
        Path, typer.Option("--candidates", help="A file or folder of submissions.")
    ],
    suite: Annotated[
        str, typer.Option("--suite", help="The suite; kernelbench:PATH or flashinfer:PATH too.")
    ] = "kernelbenchx",
    cases: Annotated[
        int | None,
        typer.Option(
            "--cases", min=1, help="Cases per candidate (16, or more where the task promises more)."
        ),
    ] = None,
    strategy: Strategies = None,
    require_kernel: RequireKernel = False,
    contract: ContractOption = "core",
    stage: Annotated[
        str, typer.Option("--stage", help="How far to go: call, exe or perf.")
    ] = "perf",
    explain: Annotated[
        bool, typer.Option(help="Look for the smallest failing case of each wrong candidate.")
    ] = True,
    baselines: Annotated[
        bool, typer.Option(help="Run the peers' checks on each candidate too.")
    ] = False,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            help="Time right candidates against this: eager, compile, compile_max_autotune or "
            "control (repeatable); default: all but compile_max_autotune.",
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", help="Label of candidates that have none.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Label of candidates that have none.")
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if any candidate is not right.")
    ] = False,
    executor: Annotated[str, typer.Option("--executor", help="local or ray.")] = "local",
    address: Annotated[
        str | None, typer.Option("--address", help="The Ray cluster: ray://HOST:PORT or auto.")
    ] = None,
    junit: JUnit = None,
    annotations: Annotations = False,
    as_json: AsJson = False,
    device: Device = "auto",
    seed: DrawnSeed = None,
    out: Out = None,
    workers: Workers = None,
    timeout: Timeout = 20.0,
) -> None:
    """Judge many candidates in stages: call, exe, perf. Resumes where it stopped."""
    from kerneltruth.documents.lines import Labels
    from kerneltruth.engine.requests import RunRequest, stages_until
    from kerneltruth.engine.start import run
    from kerneltruth.report.run_view import run_view

    options = RunRequest(
        suite=suite,
        candidates=candidates,
        device=device,
        seed=settled_seed(seed, out),
        out=out,
        workers=workers,
        deadline_s=timeout,
        cases=cases,
        strategies=tuple(strategy or ()),
        require_kernel=require_kernel,
        contract=contract,
        stages=stages_until(stage),
        explain=explain,
        baselines=baselines,
        against=tuple(against or ()),
        labels=Labels(method=method, model=model),
        executor=executor,
        address=address,
    )
    document = follow(run(options), quiet=as_json)
    show_document(document, run_view, as_json)
    from kerneltruth.report.outcomes import of_run

    export_outcomes(
        lambda: of_run(Path(document.run), candidates),
        junit=junit,
        annotations=annotations,
        as_json=as_json,
    )
    raise typer.Exit(exit_codes.of_run(document, by_candidates=exit_code))
