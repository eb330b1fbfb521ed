"""Define `baselines`, which lists what runs have timed kernels against."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app


@app.command()
def baselines(
    runs: Annotated[
        list[Path], typer.Argument(help="Run directories, or directories of `time --out`.")
    ],
    csv: Annotated[Path | None, typer.Option("--csv", help="Write all rows here.")] = None,
    as_json: options.AsJson = False,
    device: options.NoDevice = "auto",
    seed: options.NoSeed = 0,
) -> None:
    """List the baselines that runs have timed: by task, shape, device, versions and date."""
    from kerneltruth.analysis.baseline_record import record_baselines
    from kerneltruth.report.baselines_view import baselines_view

    options.show_document(record_baselines(runs, csv), baselines_view, as_json)
