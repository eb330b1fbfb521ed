"""The status that a verdict on a case gives the obligations that the case tries."""

from __future__ import annotations

from typing import Literal

from kerneltruth.documents.verdict import (
    CompileError,
    Crashed,
    Declined,
    Failed,
    Passed,
    RuntimeFault,
    TimedOut,
    Verdict,
    said_of,
)

CaseStatus = Literal["held", "broken", "refused"]
UNREACHED = "none of the cases that the budget allows tries it"


def case_status(verdict: Verdict) -> CaseStatus | None:
    """What a case says of the obligations that it tries; None where it was not judged."""
    match verdict:
        case Passed():
            return "held"
        case Failed() | Crashed() | TimedOut():
            return "broken"
        case CompileError() | RuntimeFault() | Declined():
            return "refused"
        case _:
            return None


def reason_of(verdict: Verdict) -> str:
    """Why a case was refused or not judged, in a line."""
    if isinstance(verdict, RuntimeFault):
        return f"{verdict.error}: {verdict.detail}".partition("\n")[0].rstrip(": ")
    return detail_of(verdict)


def kind_of(verdict: Verdict) -> str:
    """Return the kind of a verdict that has one, or else its word."""
    return getattr(verdict, "kind", verdict.word)


def detail_of(verdict: Verdict) -> str:
    """What a verdict says of itself, in a line, without the name of an error; or else its word."""
    return line_of(verdict) or verdict.word


def line_of(verdict: Verdict) -> str:
    """The same; nothing of a pass."""
    return said_of(verdict).strip().partition("\n")[0]
