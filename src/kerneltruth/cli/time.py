"""Define `time`, which times one kernel file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli.application import app
from kerneltruth.cli.options import (
    MOST_S,
    AsJson,
    Device,
    SearchedSuite,
    TaskName,
    follow,
    show_document,
)
from kerneltruth.report import exit_codes


@app.command(name="time")
def time_(
    file: Annotated[Path, typer.Argument(help="The kernel file to time.")],
    task: TaskName = None,
    suite: SearchedSuite = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="Working dtype; the task's first by default.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            help="eager, compile, compile_max_autotune or control (repeatable); "
            "default: all but compile_max_autotune.",
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(
            "--budget",
            min=0.0,
            help="Seconds of measuring for each shape, past the first 8 blocks.",
        ),
    ] = 2.0,
    measure_again: Annotated[
        bool,
        typer.Option("--measure-again", help="Measure this device again."),
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Profile the kernels with Nsight Compute, too.")
    ] = False,
    kernels: Annotated[
        bool,
        typer.Option("--kernels", help="Say which kernels take the time, and whose they are."),
    ] = False,
    as_json: AsJson = False,
    device: Device = "auto",
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            max=2**64 - 1,
            metavar="N",
            help="Seed of the timing; default: any.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Directory for time.json, what --json prints; not replaced."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            min=0.1,
            max=MOST_S,
            help="Seconds allowed for a batch of calls; first calls, which compile, get at "
            "least 300, and loading 60.",
        ),
    ] = 30.0,
) -> None:
    """Time one kernel file side by side with its baselines."""
    from kerneltruth.engine.requests import TimeRequest
    from kerneltruth.engine.start import run
    from kerneltruth.report.time_view import time_view

    options = TimeRequest(
        file=file,
        task=task,
        suite=suite,
        dtype=dtype,
        baselines=tuple(against or ()),
        budget_s=budget,
        measure_again=measure_again,
        profile=profile,
        kernels=kernels,
        device=device,
        seed=seed,
        out=out,
        deadline_s=timeout,
    )
    document = follow(run(options), quiet=as_json)
    show_document(document, time_view, as_json)
    raise typer.Exit(exit_codes.of_time(document))
