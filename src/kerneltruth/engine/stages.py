"""What an attempt means for each stage: call (it runs), exe (it is right), perf (it is timed)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import UNSET

from kerneltruth.documents.lines import StageRecord, StagesRecord
from kerneltruth.documents.records import Attempt
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.oracle.verdict import (
    CompileError,
    Crashed,
    Infra,
    RuntimeFault,
    TimedOut,
    UnsupportedHere,
    word,
)

NOT_RUN: Final = "not_run"


def call_stage(attempt: Attempt) -> StageRecord:
    """Return whether the candidate loads, has its entry, and returns from one call.

    A call counts as made where a case was judged on what came back, right or wrong.
    """
    verdict = attempt.verdict
    never_returned = (
        isinstance(verdict, CompileError | RuntimeFault | Crashed | TimedOut)
        and attempt.failed >= attempt.cases
    )
    if never_returned or isinstance(verdict, Infra | UnsupportedHere):
        return StageRecord(outcome=word(verdict), detail=said(attempt))
    return StageRecord(outcome="pass")


def exe_stage(attempt: Attempt, call: StageRecord) -> StageRecord:
    """Return what the judge says, if the call was made."""
    if call.outcome != "pass":
        return StageRecord(outcome=NOT_RUN, detail=f"call: {call.outcome}")
    kind = getattr(attempt.verdict, "kind", None)
    return StageRecord(
        outcome=word(attempt.verdict),
        cases=attempt.cases,
        failed=attempt.failed,
        kind=UNSET if kind is None else kind,
        detail=UNSET if kind is None else said(attempt),
    )


def stages_of(
    attempt: Attempt, wanted: Collection[str], perf: CandidateTimes | None
) -> StagesRecord:
    """Return the stages of an attempt that a run wants."""
    call = call_stage(attempt)
    return StagesRecord(
        call=call if "call" in wanted else UNSET,
        exe=exe_stage(attempt, call) if "exe" in wanted else UNSET,
        perf=UNSET if perf is None else perf,
    )


def said(attempt: Attempt) -> str:
    """Return a verdict's reason in one line."""
    for name in ("detail", "reason", "error"):
        text = getattr(attempt.verdict, name, None)
        if text:
            return str(text).splitlines()[0]
    return ""
