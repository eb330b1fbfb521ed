"""Define `analyze`, which studies runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app


@app.command()
def analyze(
    runs: Annotated[list[Path], typer.Argument(help="One or more run directories.")],
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="Break rates down by category,method,dtype... (repeatable)."),
    ] = None,
    ps: Annotated[
        list[str] | None,
        typer.Option("--p", metavar="P,...", help="For fast_p; default 0,0.5,0.8,1,1.5,2."),
    ] = None,
    ks: Annotated[
        list[str] | None, typer.Option("--k", metavar="K,...", help="For pass@k; default 1,5,10.")
    ] = None,
    kept: options.KeptRound = "best",
    obligation: options.OnObligation = None,
    without_torch_only: options.WithoutTorchOnly = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write all attempts here.")] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", help="Write all attempts here; needs pyarrow.")
    ] = None,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Show how to cite the suite.")] = False,
    as_json: options.AsJson = False,
    device: options.NoDevice = "auto",
    seed: options.StudySeed = 0,
) -> None:
    """Analyse runs: rates, pass@k, fast_p, illusions, deviance, rounds, devices."""
    given = locals()
    from kerneltruth.analysis.study import AnalyzeOptions, analyze, crossings_of
    from kerneltruth.report.analysis_view import SHOWN, analysis_view

    request = options.request(AnalyzeOptions, given)
    shown = crossings_of(request.by) or SHOWN
    options.show_document(
        analyze(request), lambda document: analysis_view(document, shown), as_json
    )
