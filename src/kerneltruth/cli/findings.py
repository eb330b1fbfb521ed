"""Define the commands on findings and runs: `replay`, `minimize`, `export`, `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app
from kerneltruth.report import exit_codes


@app.command()
def replay(
    findings: Annotated[
        list[Path], typer.Argument(help="Findings by file or ID, or run directories.")
    ],
    run: options.FindingsRun = None,
    from_snapshot: Annotated[
        bool, typer.Option("--from-snapshot", help="Use the stored inputs, not the seed.")
    ] = False,
    errors: Annotated[
        Path | None,
        typer.Option(
            "--errors", help="The folder for each element's error: arrays (.npz), heat maps (.svg)."
        ),
    ] = None,
    obligation: Annotated[
        str | None,
        typer.Option("--obligation", help="Only findings that break this one, such as shapes."),
    ] = None,
    suite: options.FindingsSuite = None,
    tasks: options.TasksFile = None,
    reference: options.Reference = None,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    isolation: options.Isolation = None,
    seed: options.FindingsSeed = None,
    deadline_s: options.Timeout = 20.0,
) -> None:
    """Run findings again: same input digests, same verdict, same output bytes."""
    given = locals()
    from kerneltruth.engine.requests import ReplayRequest
    from kerneltruth.engine.start import run as begin
    from kerneltruth.report.verdict_view import replay_view
    from kerneltruth.runs.lookup import located

    paths = tuple(located(finding, run) for finding in findings)
    request = options.request(ReplayRequest, given, paths=paths)
    document = options.follow(begin(request), quiet=as_json)
    options.show_document(document, replay_view, as_json)
    raise typer.Exit(exit_codes.of_replay(document))


@app.command()
def minimize(
    finding: Annotated[Path, typer.Argument(help="The finding to minimize, by file or ID.")],
    run: options.FindingsRun = None,
    script: Annotated[
        Path | None, typer.Option("--script", help="Where to write the standalone script.")
    ] = None,
    evaluations: Annotated[
        int, typer.Option("--evaluations", min=1, help="Budget of kernel runs.")
    ] = 400,
    suite: options.FindingsSuite = None,
    tasks: options.TasksFile = None,
    reference: options.Reference = None,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    isolation: options.Isolation = None,
    seed: options.FindingsSeed = None,
    deadline_s: options.Timeout = 20.0,
) -> None:
    """Find the smallest failing case, and write a standalone script that shows it."""
    given = locals()
    from kerneltruth.engine.requests import MinimizeRequest
    from kerneltruth.engine.start import run as begin
    from kerneltruth.report.verdict_view import minimize_view
    from kerneltruth.runs.lookup import located

    request = options.request(MinimizeRequest, given, path=located(finding, run))
    document = options.follow(begin(request), quiet=as_json)
    options.show_document(document, minimize_view, as_json)


@app.command()
def export(
    finding: Annotated[Path, typer.Argument(help="The finding to export, by file or ID.")],
    run: options.FindingsRun = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The file to write, which is replaced; default: ID.finding.json."
        ),
    ] = None,
    as_json: options.AsJson = False,
    device: options.NoDevice = "auto",
    seed: options.NoSeed = 0,
) -> None:
    """Write a finding, its kernel and its inputs into one file, which replays anywhere."""
    from kerneltruth.engine.export import export_finding
    from kerneltruth.report.export_view import export_view
    from kerneltruth.runs.lookup import located

    document = export_finding(located(finding, run), out)
    options.show_document(document, export_view, as_json)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run directories.")],
    obligation: options.OnObligation = None,
    without_torch_only: options.WithoutTorchOnly = False,
    as_json: options.AsJson = False,
    device: options.NoDevice = "auto",
    seed: options.NoSeed = 0,
) -> None:
    """Compare runs of the same kernels, repeated or on several devices: verdicts and speedups."""
    from kerneltruth.analysis.compare import compare_runs
    from kerneltruth.analysis.selection import Selection
    from kerneltruth.report.compare_view import compare_view

    only = Selection(obligation=obligation, without_torch_only=without_torch_only)
    document = compare_runs(runs, only)
    options.show_document(document, compare_view, as_json)
    raise typer.Exit(exit_codes.of_compare(document))
