"""Define `report`, which makes a page of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="One or more run directories.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to write; an existing one is replaced.")
    ] = Path("report.html"),
    leaderboard: Annotated[
        bool, typer.Option("--leaderboard", help="Rank methods, and show the best kernels.")
    ] = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Set the runs side by side: what broke, what improved."),
    ] = False,
    title: Annotated[str | None, typer.Option("--title", help="The page's heading.")] = None,
    keep: options.KeptRound = "best",
    obligation: options.OnObligation = None,
    without_torch_only: options.WithoutTorchOnly = False,
    as_json: options.AsJson = False,
    device: options.NoDevice = "auto",
    seed: options.StudySeed = 0,
) -> None:
    """Make one page of runs; it opens in a browser without a network."""
    from kerneltruth.analysis.selection import Selection
    from kerneltruth.analysis.study import without_garbage_collection
    from kerneltruth.report.html import page
    from kerneltruth.report.page.document import page_document
    from kerneltruth.report.page.material import check_out, collect, write_page
    from kerneltruth.report.page_view import page_view, summary

    check_out(out)
    only = Selection(obligation=obligation, without_torch_only=without_torch_only)
    with without_garbage_collection():
        material = collect(runs, kept=keep, only=only)
        made = page_document(material, title=title, ranks=leaderboard, compare=compare, seed=seed)
    size = write_page(out, page(made))
    options.show_document(summary(made, out=str(out), size=size), page_view, as_json)
