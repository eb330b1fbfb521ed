"""What `check --json` prints of an attempt."""

from __future__ import annotations

from pathlib import Path

from kerneltruth.documents.checks import (
    CheckDocument,
    DeclinedCase,
    InterfaceDocument,
    ObligationDocument,
)
from kerneltruth.documents.model import model_of
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

    `finding` is the file name of the one that decides, within the directory `run`, if one is
    written.
    """
    verdict = attempt.verdict
    failed = verdict if isinstance(verdict, Failed) else None
    failure = attempt.failure
    failing = failure.case if failure else None
    chosen = options.task is not None or options.suite is not None or not attempt.task
    return model_of(
        CheckDocument,
        attempt,
        also_in=() if chosen else tuple(elsewhere(find(attempt.task))),
        passed=isinstance(verdict, Passed),
        verdict=verdict.word,
        hazards=tuple(attempt.hazards.values()),
        declined=tuple(DeclinedCase(case=c.summary(), reason=why) for c, why in attempt.declined),
        kind=failed.kind if failed else None,
        output=failed.output if failed else None,
        causes=failed.causes if failed else (),
        inputs=failed.inputs if failed else (),
        detail=_said(attempt.verdict),
        profile={key: _obligation(entry) for key, entry in attempt.profile.items()},
        interface=tuple(
            model_of(InterfaceDocument, note, first_summary=note.first.summary())
            for note in attempt.interface
        ),
        finding=_path(finding, run) if finding else None,
        failing=failing,
        failing_summary=failing.summary() if failing else None,
        domain=failing.domain if failing else None,
        minimal_summary=attempt.minimal.summary() if attempt.minimal else None,
        minimal_shown=attempt.shown,
        stats=failure.stats if failure else None,
        seed=options.seed,
        seconds=seconds,
        run=str(run) if run else None,
    )


def _path(finding: str, run: Path | None) -> str:
    return str(run / "findings" / finding) if run else finding


def _obligation(entry: ProfileEntry) -> ObligationDocument:
    failure = entry.failure
    verdict = failure.verdict if failure else None
    return model_of(
        ObligationDocument,
        entry,
        kind=verdict.kind if isinstance(verdict, Failed) else None,
        detail="" if verdict is None else _said_of_case(verdict),
        case=failure.case if failure else None,
        case_summary=failure.case.summary() if failure else None,
    )


def _said_of_case(verdict: Verdict) -> str:
    if isinstance(verdict, TimedOut):
        return f"did not return within {verdict.seconds:g} s"
    return _said(verdict)


def _said(verdict: Verdict) -> str:
    for name in ("detail", "reason"):
        if hasattr(verdict, name):
            return str(getattr(verdict, name))
    return ""
