"""Define `audit`: judge the built-in corpus, or let a suite prove itself."""

from __future__ import annotations

from typing import Annotated

import typer

from kerneltruth.cli.application import app
from kerneltruth.cli.options import (
    AsJson,
    ContractOption,
    Device,
    Out,
    Seed,
    Targets,
    Timeout,
    Workers,
    follow,
    show_document,
)
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
    cases: Annotated[
        int | None,
        typer.Option("--cases", min=1, help="Cases per kernel (36), or per task and dtype (16)."),
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
    contract: ContractOption = "core",
    target: Targets = None,
) -> None:
    """Judge the built-in corpus, and run the peers' checks on the same kernels."""
    from kerneltruth.documents.runs import AuditDocument
    from kerneltruth.documents.suites import TimedSuiteDocument
    from kerneltruth.engine.requests import AuditRequest
    from kerneltruth.engine.start import run
    from kerneltruth.report.audit_view import audit_view

    options = AuditRequest(
        device=device,
        seed=seed,
        out=out,
        workers=workers,
        deadline_s=timeout,
        only=tuple(only or ()),
        cases=cases or (36 if suite is None else 16),
        promises=suite is not None and cases is None,
        contract=contract,
        baselines=baselines,
        targets=tuple(target or ("sm_90",)),
        suite=suite,
        timed=timed,
        budget_s=budget,
    )
    document = follow(run(options), quiet=as_json)
    if isinstance(document, AuditDocument):
        show_document(document, audit_view, as_json)
        raise typer.Exit(exit_codes.of_audit(document))
    if isinstance(document, TimedSuiteDocument):
        from kerneltruth.report.timed_audit_view import timed_audit_view

        show_document(document, timed_audit_view, as_json)
        stopped = document.interrupted
        raise typer.Exit(Interrupted.exit_code if stopped else exit_codes.of_timed_suite(document))
    from kerneltruth.report.suite_view import suite_view

    show_document(document, suite_view, as_json)
    raise typer.Exit(exit_codes.of_suite(document))
