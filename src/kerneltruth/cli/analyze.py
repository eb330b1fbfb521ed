"""Define `analyze`, which studies runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli.application import app
from kerneltruth.cli.options import AsJson, KeptRound, NoDevice, StudySeed, show_document


@app.command()
def analyze(
    runs: Annotated[list[Path], typer.Argument(help="One or more run directories.")],
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="Break rates down by category,method,dtype... (repeatable)."),
    ] = None,
    p: Annotated[
        list[str] | None,
        typer.Option("--p", metavar="P,...", help="For fast_p; default 0,0.5,0.8,1,1.5,2."),
    ] = None,
    k: Annotated[
        list[str] | None, typer.Option("--k", metavar="K,...", help="For pass@k; default 1,5,10.")
    ] = None,
    keep: KeptRound = "best",
    csv: Annotated[Path | None, typer.Option("--csv", help="Write all attempts here.")] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", help="Write all attempts here; needs pyarrow.")
    ] = None,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Show how to cite the suite.")] = False,
    as_json: AsJson = False,
    device: NoDevice = "auto",
    seed: StudySeed = 0,
) -> None:
    """Analyse runs: rates, pass@k, fast_p, illusions, deviance, rounds, devices."""
    del device
    from kerneltruth.analysis.study import AnalyzeOptions, analyze, crossings_of
    from kerneltruth.report.analysis_view import SHOWN, analysis_view

    options = AnalyzeOptions(
        runs=tuple(runs),
        by=tuple(by or ()),
        ps=tuple(p or ()),
        ks=tuple(k or ()),
        kept=keep,
        csv=csv,
        parquet=parquet,
        bibtex=bibtex,
        seed=seed,
    )
    shown = crossings_of(options.by) or SHOWN
    show_document(analyze(options), lambda document: analysis_view(document, shown), as_json)
