"""Commands that judge: `audit`, `check`, `run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kerneltruth.cli.application import app
from kerneltruth.cli.options import (
    Annotations,
    AsJson,
    Device,
    DrawnSeed,
    JUnit,
    Out,
    Seed,
    Timeout,
    Workers,
    follow,
    hand_over,
    show_document,
)
from kerneltruth.cli.seeds import settled_seed
from kerneltruth.errors import Interrupted
from kerneltruth.report import exit_codes


@app.command()
def audit(
    as_json: AsJson = False,
    device: Device = "auto",
    seed: Seed = 0,
    out: Out = None,
    workers: Workers = None,
    timeout: Timeout = 20.0,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Judge only these kernels (repeatable).")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Judge the whole corpus, not only a part.")
    ] = False,
    cases: Annotated[
        int | None,
        typer.Option("--cases", min=1, help="Cases per kernel (32), or per task and dtype (16)."),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option("--suite", help="In place of the corpus, prove this suite's tasks."),
    ] = None,
    timed: Annotated[
        bool,
        typer.Option("--timed", help="Time the suite's PyTorch functions against themselves."),
    ] = False,
    budget: Annotated[
        float | None,
        typer.Option("--budget", min=0.0, help="Seconds after which an audit of --suite ends."),
    ] = None,
    baselines: Annotated[
        bool, typer.Option(help="Run the peers' checks on the same kernels.")
    ] = True,
    target: Annotated[
        list[str] | None, typer.Option("--target", help="Compile for this target (repeatable).")
    ] = None,
) -> None:
    """Judge the built-in corpus, and show what the peers' checks say of the same kernels."""
    from kerneltruth.documents.runs import AuditDocument
    from kerneltruth.engine.requests import AuditRequest
    from kerneltruth.engine.start import run_audit
    from kerneltruth.report.audit_view import audit_view

    options = AuditRequest(
        device=device,
        seed=seed,
        out=out,
        workers=workers,
        deadline_s=timeout,
        only=tuple(only or ()),
        full=full,
        cases=cases or (32 if suite is None else 16),
        promises=suite is not None and cases is None,
        baselines=baselines,
        targets=tuple(target or ("sm_90",)),
        suite=suite,
        timed=timed,
        budget_s=budget,
    )
    document = follow(run_audit(options), quiet=as_json)
    if isinstance(document, AuditDocument):
        show_document(document, audit_view, as_json)
        raise typer.Exit(exit_codes.of_audit(document))
    if timed:
        from kerneltruth.report.timed_audit_view import timed_audit_view

        show_document(document, timed_audit_view, as_json)
        stopped = document["interrupted"]
        raise typer.Exit(Interrupted.exit_code if stopped else exit_codes.of_timed_suite(document))
    from kerneltruth.report.suite_view import suite_view

    show_document(document, suite_view, as_json)
    raise typer.Exit(exit_codes.of_suite(document))


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="The kernel file to judge.")],
    task: Annotated[
        str | None, typer.Option("--task", help="Task; inferred from the entry where possible.")
    ] = None,
    suite: Annotated[
        str | None, typer.Option("--suite", help="Where to look for the task: see `tasks`.")
    ] = None,
    dtype: Annotated[
        list[str] | None, typer.Option("--dtype", help="Only these dtypes (repeatable).")
    ] = None,
    strategy: Annotated[
        list[str] | None, typer.Option("--strategy", help="Only these strategies (repeatable).")
    ] = None,
    cases: Annotated[
        int | None,
        typer.Option(
            "--cases", min=1, help="Cases to judge (48, or more where the task promises more)."
        ),
    ] = None,
    bounds: Annotated[
        str, typer.Option("--bounds", help="spread, calibrated or fixed.")
    ] = "spread",
    tf32: Annotated[
        bool, typer.Option(help="Whether fp32 matrix products may use TF32, Triton's default.")
    ] = True,
    domain: Annotated[str, typer.Option("--domain", help="core or extended.")] = "extended",
    target: Annotated[
        list[str] | None, typer.Option("--target", help="Compile for this target (repeatable).")
    ] = None,
    junit: JUnit = None,
    annotations: Annotations = False,
    as_json: AsJson = False,
    device: Device = "auto",
    seed: DrawnSeed = None,
    out: Out = None,
    timeout: Timeout = 20.0,
) -> None:
    """Judge one kernel file."""
    from kerneltruth.engine.requests import CheckRequest
    from kerneltruth.engine.start import run_check
    from kerneltruth.report.verdict_view import check_view

    options = CheckRequest(
        file=file,
        task=task,
        suite=suite,
        dtypes=tuple(dtype or ()),
        strategies=tuple(strategy or ()),
        cases=cases,
        bounds=bounds,
        tf32=tf32,
        domain=domain,
        targets=tuple(target or ("sm_90",)),
        device=device,
        seed=settled_seed(seed, out),
        out=out,
        deadline_s=timeout,
    )
    document = follow(run_check(options), quiet=as_json)
    show_document(document, check_view, as_json)
    from kerneltruth.report.outcomes import of_check

    hand_over(
        lambda: of_check(document, file, device=device),
        junit=junit,
        annotations=annotations,
        as_json=as_json,
    )
    raise typer.Exit(exit_codes.of_check(document.verdict))


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
    strategy: Annotated[
        list[str] | None, typer.Option("--strategy", help="Only these strategies (repeatable).")
    ] = None,
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
        str | None, typer.Option("--method", help="Label where a candidate brings none.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Label where a candidate brings none.")
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if any candidate is not right.")
    ] = False,
    executor: Annotated[str, typer.Option("--executor", help="local or ray.")] = "local",
    address: Annotated[
        str | None, typer.Option("--address", help="Of a Ray cluster: ray://HOST:PORT or auto.")
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
    from kerneltruth.engine.requests import RunRequest, stages_until
    from kerneltruth.engine.start import run_suite
    from kerneltruth.report.run_view import run_view
    from kerneltruth.suites.submission import Labels

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
        stages=stages_until(stage),
        explain=explain,
        baselines=baselines,
        against=tuple(against or ()),
        labels=Labels(method=method, model=model),
        executor=executor,
        address=address,
    )
    document = follow(run_suite(options), quiet=as_json)
    show_document(document, run_view, as_json)
    from kerneltruth.report.outcomes import of_run

    hand_over(
        lambda: of_run(Path(document.run), candidates),
        junit=junit,
        annotations=annotations,
        as_json=as_json,
    )
    raise typer.Exit(exit_codes.of_run(document, by_candidates=exit_code))
