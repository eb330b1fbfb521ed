"""Define the commands on findings and runs: `replay`, `minimize`, `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli.application import app
from kerneltruth.cli.options import (
    AsJson,
    Device,
    FindingsSuite,
    NoDevice,
    NoSeed,
    Timeout,
    follow,
    show_document,
)
from kerneltruth.report import exit_codes


@app.command()
def replay(
    findings: Annotated[list[Path], typer.Argument(help="Finding files or run directories.")],
    from_snapshot: Annotated[
        bool, typer.Option("--from-snapshot", help="Use the stored inputs, not the seed.")
    ] = False,
    suite: FindingsSuite = None,
    as_json: AsJson = False,
    device: Device = "auto",
    seed: NoSeed = None,
    timeout: Timeout = 20.0,
) -> None:
    """Run findings again: same input digests, same verdict, same output bytes."""
    del seed
    from kerneltruth.engine.requests import ReplayRequest
    from kerneltruth.engine.start import run
    from kerneltruth.report.verdict_view import replay_view

    request = ReplayRequest(
        paths=tuple(findings),
        from_snapshot=from_snapshot,
        suite=suite,
        device=device,
        deadline_s=timeout,
    )
    document = follow(run(request), quiet=as_json)
    show_document(document, replay_view, as_json)
    raise typer.Exit(exit_codes.of_replay(document))


@app.command()
def minimize(
    finding: Annotated[Path, typer.Argument(help="The finding to minimize.")],
    script: Annotated[
        Path | None, typer.Option("--script", help="Where to write the standalone script.")
    ] = None,
    evaluations: Annotated[
        int, typer.Option("--evaluations", min=1, help="Budget of kernel runs.")
    ] = 400,
    suite: FindingsSuite = None,
    as_json: AsJson = False,
    device: Device = "auto",
    seed: NoSeed = None,
    timeout: Timeout = 20.0,
) -> None:
    """Find the smallest failing case, and write a standalone script that shows it."""
    del seed
    from kerneltruth.engine.requests import MinimizeRequest
    from kerneltruth.engine.start import run
    from kerneltruth.report.verdict_view import minimize_view

    request = MinimizeRequest(
        path=finding,
        script=script,
        evaluations=evaluations,
        suite=suite,
        device=device,
        deadline_s=timeout,
    )
    document = follow(run(request), quiet=as_json)
    show_document(document, minimize_view, as_json)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run directories.")],
    as_json: AsJson = False,
    device: NoDevice = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Ignored.")] = 0,
) -> None:
    """Compare runs of the same kernels, repeated or on several devices: verdicts and speedups."""
    del device, seed
    from kerneltruth.analysis.compare import compare_runs
    from kerneltruth.report.compare_view import compare_view

    document = compare_runs(runs)
    show_document(document, compare_view, as_json)
    raise typer.Exit(exit_codes.of_compare(document))
