"""What `check --json` prints of an attempt."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import asdict

from kerneltruth.documents.checks import (
    CheckDocument,
    DeclinedCase,
    InterfaceDocument,
    ObligationDocument,
)
from kerneltruth.documents.records import Attempt, ProfileEntry
from kerneltruth.documents.verdict import Failed, Passed, TimedOut, Verdict
from kerneltruth.engine.requests import CheckRequest
from kerneltruth.tasks.registry import elsewhere, find


def check_document(
    options: CheckRequest,
    attempt: Attempt,
    *,
    finding: str | None,
    run: Path | None,
    seconds: float,
) -> CheckDocument:
    """Return the document of a judged file.

    Args:
        options: what was requested.
        attempt: what came of it.
        finding: the file name of the finding that decides, if it failed.
        run: the directory that holds it; None where nothing was written.
        seconds: that the command took.
    """
    verdict = attempt.verdict
    failed = verdict if isinstance(verdict, Failed) else None
    failure = attempt.failure
    failing = failure.case if failure else None
    chosen = options.task is not None or options.suite is not None or not attempt.task
    return CheckDocument(
        task=attempt.task,
        also_in=() if chosen else tuple(elsewhere(find(attempt.task))),
        candidate=attempt.candidate,
        torch_only=attempt.torch_only,
        contract=attempt.contract,
        passed=isinstance(verdict, Passed),
        verdict=verdict.word,
        hazards=tuple(_hazard(attempt, key) for key in attempt.hazards),
        declined=tuple(DeclinedCase(case=c.summary(), reason=why) for c, why in attempt.declined),
        kind=failed.kind if failed else None,
        output=failed.output if failed else None,
        causes=failed.causes if failed else (),
        inputs=failed.inputs if failed else (),
        detail=_said(attempt.verdict),
        explanation=attempt.explanation,
        cases=attempt.cases,
        failed=attempt.failed,
        unrefereeable=attempt.unrefereeable,
        void=attempt.void,
        skipped=attempt.skipped,
        own_weights=attempt.own_weights,
        profile={key: _obligation(entry) for key, entry in attempt.profile.items()},
        score=attempt.score,
        kernel=attempt.kernel,
        interface=tuple(
            InterfaceDocument(**asdict(note), first_summary=note.first.summary())
            for note in attempt.interface
        ),
        finding=_path(finding, run) if finding else None,
        failing=failing,
        failing_summary=failing.summary() if failing else None,
        domain=failing.domain if failing else None,
        minimal=attempt.minimal,
        minimal_summary=attempt.minimal.summary() if attempt.minimal else None,
        minimal_shown=attempt.shown,
        stats=failure.stats if failure else None,
        worst_ratio=attempt.worst_ratio,
        binaries=attempt.binaries,
        seed=options.seed,
        seconds=seconds,
        run=str(run) if run else None,
    )


def _path(finding: str, run: Path | None) -> str:
    return str(run / "findings" / finding) if run else finding


def _obligation(entry: ProfileEntry) -> ObligationDocument:
    failure = entry.failure
    verdict = failure.verdict if failure else None
    return ObligationDocument(
        status=entry.status,
        promised=entry.promised,
        decisive=entry.decisive,
        cases=entry.cases,
        reason=entry.reason,
        kind=verdict.kind if isinstance(verdict, Failed) else None,
        detail="" if verdict is None else _said_of_case(verdict),
        case=failure.case if failure else None,
        case_summary=failure.case.summary() if failure else None,
        finding=entry.finding,
    )


def _hazard(attempt: Attempt, key: str) -> str:
    finding = attempt.profile[key].finding
    return attempt.hazards[key] + (f" (finding {finding.removesuffix('.json')})" if finding else "")


def _said_of_case(verdict: Verdict) -> str:
    if isinstance(verdict, TimedOut):
        return f"did not return within {verdict.seconds:g} s"
    return _said(verdict)


def _said(verdict: Verdict) -> str:
    for name in ("detail", "reason"):
        if hasattr(verdict, name):
            return str(getattr(verdict, name))
    return ""
