"""What an attempt means for each stage: call (it runs), exe (it is right), perf (it is timed)."""

from __future__ import annotations

from typing import Any

from kerneltruth.oracle.attempt import Attempt
from kerneltruth.oracle.verdict import (
    CompileError,
    Crashed,
    Infra,
    RuntimeFault,
    TimedOut,
    UnsupportedHere,
    word,
)

NOT_RUN = "not_run"


def call_stage(attempt: Attempt) -> dict[str, Any]:
    """Whether the candidate loads, has its entry, and returns from one call.

    A call counts as made where a case was judged on what came back, right or wrong.
    """
    verdict = attempt.verdict
    never_returned = (
        isinstance(verdict, CompileError | RuntimeFault | Crashed | TimedOut)
        and attempt.failed >= attempt.cases
    )
    if never_returned or isinstance(verdict, Infra | UnsupportedHere):
        return {"outcome": word(verdict), "detail": said(attempt)}
    return {"outcome": "pass"}


def exe_stage(attempt: Attempt, call: dict[str, Any]) -> dict[str, Any]:
    """What the judge says, where the call was made."""
    if call["outcome"] != "pass":
        return {"outcome": NOT_RUN, "detail": f"call: {call['outcome']}"}
    kind = getattr(attempt.verdict, "kind", None)
    stage = {"outcome": word(attempt.verdict), "cases": attempt.cases, "failed": attempt.failed}
    return stage if kind is None else {**stage, "kind": kind, "detail": said(attempt)}


def stages_of(attempt: Attempt) -> dict[str, dict[str, Any]]:
    """The stages call and exe of an attempt; perf is added by who timed it."""
    call = call_stage(attempt)
    return {"call": call, "exe": exe_stage(attempt, call)}


def said(attempt: Attempt) -> str:
    """What a verdict says of its reason, in one line."""
    for name in ("detail", "reason", "error"):
        text = getattr(attempt.verdict, name, None)
        if text:
            return str(text).splitlines()[0]
    return ""
