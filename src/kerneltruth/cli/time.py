"""Define `time`, which times one kernel file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app
from kerneltruth.report import exit_codes

File = Annotated[Path, typer.Argument(help="The kernel file to time.")]
Dtype = Annotated[
    str | None, typer.Option("--dtype", help="Working dtype; the task's first by default.")
]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        help="eager, compile, compile_max_autotune or control (repeatable); "
        "default: all but compile_max_autotune.",
    ),
]
Budget = Annotated[
    float,
    typer.Option(
        "--budget",
        min=0.0,
        help="Seconds of measuring for each shape, past the first 8 blocks.",
    ),
]
MeasureAgain = Annotated[bool, typer.Option("--measure-again", help="Measure this device again.")]
ProfileToo = Annotated[
    bool, typer.Option("--profile", help="Profile the kernels with Nsight Compute, too.")
]
Kernels = Annotated[
    bool | None,
    typer.Option(
        "--kernels/--no-kernels",
        help="Say which kernels take the time, and whose they are; the default on a GPU.",
        show_default=False,
    ),
]
EnergyToo = Annotated[
    bool,
    typer.Option("--energy", help="Measure joules a call and watts, too; about 10 s a shape."),
]
ResultFolder = Annotated[
    Path | None,
    typer.Option("--out", help="Directory for time.json, what --json prints; not replaced."),
]


@app.command(name="time")
def time_(
    file: File,
    task: options.TaskName = None,
    suite: options.SearchedSuite = None,
    tasks: options.TasksFile = None,
    reference: options.Reference = None,
    entry: options.Entry = None,
    dtype: Dtype = None,
    baselines: Against = None,
    budget_s: Budget = 2.0,
    measure_again: MeasureAgain = False,
    profile: ProfileToo = False,
    kernels: Kernels = None,
    energy: EnergyToo = False,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    isolation: options.Isolation = None,
    seed: options.TimingSeed = None,
    out: ResultFolder = None,
    deadline_s: options.BatchTimeout = 30.0,
) -> None:
    """Time one kernel file side by side with its baselines."""
    given = locals()
    from kerneltruth.engine.requests import TimeRequest
    from kerneltruth.engine.start import run
    from kerneltruth.report.time_view import time_view

    source = options.given_source(file, entry)
    request = options.request(
        TimeRequest, given, file=source.file, source=source.source, entry=source.entry
    )
    document = options.follow(run(request), quiet=as_json)
    options.show_document(document, time_view, as_json)
    raise typer.Exit(exit_codes.of_time(document))
