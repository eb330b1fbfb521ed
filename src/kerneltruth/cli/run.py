"""Define `run`, which judges many candidates in stages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app
from kerneltruth.report import exit_codes

Candidates = Annotated[Path, typer.Option("--candidates", help="A file or folder of submissions.")]
Cases = Annotated[
    int | None,
    typer.Option(
        "--cases", min=1, help="Cases per candidate (16, or more where the task promises more)."
    ),
]
Stage = Annotated[str, typer.Option("--stage", help="How far to go: call, exe or perf.")]
Explain = Annotated[
    bool, typer.Option(help="Look for the smallest failing case of each wrong candidate.")
]
PeerChecks = Annotated[bool, typer.Option(help="Run the peers' checks on each candidate too.")]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        help="Time right candidates against this: eager, compile, compile_max_autotune or "
        "control (repeatable); default: all but compile_max_autotune.",
    ),
]
Kernels = Annotated[
    bool,
    typer.Option(
        "--kernels",
        help="Say whose kernels take the device's time of right candidates: some seconds for each.",
    ),
]
MethodLabel = Annotated[
    str | None, typer.Option("--method", help="Label of candidates that have none.")
]
ModelLabel = Annotated[
    str | None, typer.Option("--model", help="Label of candidates that have none.")
]
LastFailed = Annotated[
    bool,
    typer.Option(
        "--lf", help="Judge only what did not pass in the last run of these candidates in runs/."
    ),
]
ByCandidates = Annotated[
    bool, typer.Option("--exit-code", help="Exit with 1 if any candidate is not right.")
]
Executor = Annotated[str, typer.Option("--executor", help="local or ray.")]
Address = Annotated[
    str | None, typer.Option("--address", help="The Ray cluster: ray://HOST:PORT or auto.")
]


@app.command(name="run")
def run_(
    candidates: Candidates,
    suite: options.Suite = options.DEFAULT_SUITE,
    tasks: options.TasksFile = None,
    reference: options.Reference = None,
    cases: Cases = None,
    strategies: options.Strategies = None,
    require_kernel: options.RequireKernel = False,
    twice: options.Twice = False,
    contract: options.ContractName = "core",
    stage: Stage = "perf",
    explain: Explain = True,
    peer_checks: PeerChecks = False,
    baselines: options.EarlierPeerChecks = None,
    against: Against = None,
    kernels: Kernels = False,
    last_failed: LastFailed = False,
    method: MethodLabel = None,
    model: ModelLabel = None,
    exit_code: ByCandidates = False,
    executor: Executor = "local",
    address: Address = None,
    junit: options.JUnit = None,
    annotations: options.Annotations = False,
    as_json: options.AsJson = False,
    device: options.Devices = "auto",
    isolation: options.Isolation = None,
    seed: options.DrawnSeed = None,
    out: options.Out = None,
    workers: options.Workers = None,
    deadline_s: options.Timeout = 20.0,
) -> None:
    """Judge many candidates in stages: call, exe, perf. Resumes where it stopped."""
    given = locals()
    from kerneltruth.documents.lines import Labels
    from kerneltruth.engine.requests import RunRequest, stages_until
    from kerneltruth.engine.start import run
    from kerneltruth.report.junit_entries import of_run
    from kerneltruth.report.run_view import run_view

    request = options.request(
        RunRequest,
        given,
        seed=options.settled_seed(seed, out),
        stages=stages_until(stage),
        labels=Labels(method=method, model=model),
        peer_checks=peer_checks,
    )
    document = options.follow(run(request), quiet=as_json)
    options.show_document(document, run_view, as_json)
    options.export_entries(lambda: of_run(Path(document.run), candidates), given)
    raise typer.Exit(exit_codes.of_run(document, by_candidates=exit_code))
