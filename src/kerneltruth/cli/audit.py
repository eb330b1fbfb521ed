"""Define `audit`: judge the built-in corpus, or let a suite prove itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app
from kerneltruth.errors import Interrupted, UserError
from kerneltruth.report import exit_codes

if TYPE_CHECKING:
    from kerneltruth.engine.requests import AnyAudit

Only = Annotated[
    list[str] | None, typer.Option("--only", help="Judge only these kernels (repeatable).")
]
Cases = Annotated[
    int | None,
    typer.Option("--cases", min=1, help="Cases per kernel (36), or per task and dtype (16)."),
]
AuditedSuite = Annotated[
    str | None,
    typer.Option("--suite", help="Prove this suite's tasks in place of the corpus."),
]
Timed = Annotated[
    bool,
    typer.Option(
        "--timed",
        help="Time the suite's PyTorch functions against themselves, or exploits about speed.",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option("--budget", min=0.0, help="Seconds after which an audit of --suite ends."),
]
Exploits = Annotated[
    bool,
    typer.Option("--exploits", help="Try candidates that cheat, in place of the corpus."),
]
PeerChecks = Annotated[bool, typer.Option(help="Run the peers' checks on the same kernels.")]


@app.command()
def audit(
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    isolation: options.Isolation = None,
    seed: options.AuditSeed = None,
    out: options.Out = None,
    workers: options.Workers = None,
    deadline_s: options.Timeout = 20.0,
    only: Only = None,
    cases: Cases = None,
    suite: AuditedSuite = None,
    tasks: options.TasksFile = None,
    reference: options.Reference = None,
    timed: Timed = False,
    budget_s: Budget = None,
    peer_checks: PeerChecks = True,
    baselines: options.EarlierPeerChecks = None,
    contract: options.AuditedContract = None,
    targets: options.Targets = None,
    exploits: Exploits = False,
) -> None:
    """Judge the built-in corpus, and run the peers' checks on the same kernels."""
    given = locals()
    if exploits:
        raise typer.Exit(_exploits(given, seed=seed, as_json=as_json))
    from kerneltruth.engine.requests import AuditRequest
    from kerneltruth.engine.start import run

    of_suite = suite is not None or tasks is not None
    request = options.request(
        AuditRequest,
        given,
        cases=cases or (16 if of_suite else 36),
        promises=of_suite and cases is None,
        peer_checks=peer_checks,
    )
    raise typer.Exit(_show(options.follow(run(request), quiet=as_json), as_json))


def _exploits(given: Mapping[str, object], *, seed: int | None, as_json: bool) -> int:
    """Try the exploits of the corpus, print the document, and return the exit code.

    Raises:
        UserError: an option is given that only other audits have.
    """
    from kerneltruth.engine.requests import ExploitsRequest
    from kerneltruth.engine.start import run
    from kerneltruth.report.exploits_view import exploits_view

    for name in ("out", "suite", "tasks", "reference", "cases", "budget_s", "contract"):
        if given[name] is not None:
            option = "budget" if name == "budget_s" else name
            raise UserError(f"--{option}: does not go with --exploits; leave one of them out")
    settled = options.settled_seed(seed, None)
    request = options.request(ExploitsRequest, given, seed=settled)
    document = options.follow(run(request), quiet=as_json)
    options.show_document(document, exploits_view, as_json)
    return exit_codes.of_exploits(document)


def _show(document: AnyAudit, as_json: bool) -> int:
    """Print the document of an audit, and return the exit code."""
    from kerneltruth.documents.runs import AuditDocument
    from kerneltruth.documents.suites import TimedSuiteDocument

    if isinstance(document, AuditDocument):
        from kerneltruth.report.audit_view import audit_view

        options.show_document(document, audit_view, as_json)
        return exit_codes.of_audit(document)
    if isinstance(document, TimedSuiteDocument):
        from kerneltruth.report.suite_view import timed_audit_view

        options.show_document(document, timed_audit_view, as_json)
        stopped = document.interrupted
        return Interrupted.exit_code if stopped else exit_codes.of_timed_suite(document)
    from kerneltruth.report.suite_view import suite_view

    options.show_document(document, suite_view, as_json)
    return exit_codes.of_suite(document)
