"""Describe a failure by its profile, and each profile entry in a line."""

from __future__ import annotations

from collections.abc import Mapping

from kerneltruth.documents.checks import ObligationDocument
from kerneltruth.documents.records import Judgement, ProfileEntry, Status

# A line names at most this many kinds that had no turn.
NAMED = 6
NO_TURN = "the number of cases was used up first"
FAILING: tuple[Status, ...] = ("broken", "refused")


def failing_with(profile: Mapping[str, ProfileEntry], failure: Judgement | None) -> tuple[str, ...]:
    """Return the obligations that this failure breaks, or in which it is a refusal."""
    failing = ((key, e) for key, e in profile.items() if e.status in FAILING)
    return tuple(key for key, e in failing if failure is not None and e.failure == failure)


def said_of_entry(entry: ProfileEntry) -> str:
    """Return `held in 3 cases`, `broken: nan on N=1 float32 ...` or `not tried: why`."""
    failure = entry.failure
    if failure is None:
        return _said(entry.status, entry.cases, entry.reason, None) + _but(entry.untried)
    kind = getattr(failure.verdict, "kind", failure.verdict.word)
    return _said(entry.status, entry.cases, entry.reason or kind, failure.case.summary())


def said_of_document(entry: ObligationDocument) -> str:
    """Return what `said_of_entry` does, for an entry of `check --json`."""
    reason = entry.reason or entry.kind or entry.detail.partition("\n")[0]
    return _said(entry.status, entry.cases, reason, entry.case_summary) + _but(entry.untried)


def said_of_untried(untried: Mapping[str, str]) -> str:
    """Return `not tried: misaligned, offset` for kinds of an obligation that had no turn."""
    names = [name if why == NO_TURN else f"{name} ({why})" for name, why in untried.items()]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED + 1 else ""
    return f"not tried: {', '.join(names[:NAMED] if more else names)}{more}"


def _but(untried: Mapping[str, str]) -> str:
    return f"; {said_of_untried(untried)}" if untried else ""


def _said(status: Status, cases: int, reason: str | None, case: str | None) -> str:
    if status == "held":
        return f"held in {cases} case{'s' * (cases != 1)}"
    said = status.replace("_", " ") + (f": {reason}" if reason else "")
    return f"{said} on {case}" if case and status in FAILING else said
