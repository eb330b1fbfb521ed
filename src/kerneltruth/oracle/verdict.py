"""What the judge concludes: a tagged union, never a bool.

Every attempt on a case ends in exactly one of these. `Passed` and `Failed` are judgements of the
kernel's output; `CompileError`, `RuntimeFault`, `Crashed` and `TimedOut` say that there was no
output; `Declined` is a clear refusal in the extended domain, counted but not wrong; the last four
say that no judgement was possible; the candidate is not at fault.
"""

from __future__ import annotations

from kerneltruth.documents.records import (
    Cause,
    CompileError,
    Crashed,
    Declined,
    Failed,
    FailKind,
    Infra,
    Passed,
    RuntimeFault,
    TimedOut,
    Unrefereeable,
    UnsupportedHere,
    Verdict,
    Void,
)

__all__ = [
    "OF_SEVERAL_CALLS",
    "Cause",
    "CompileError",
    "Crashed",
    "Declined",
    "FailKind",
    "Failed",
    "Infra",
    "Passed",
    "RuntimeFault",
    "TimedOut",
    "Unrefereeable",
    "UnsupportedHere",
    "Verdict",
    "Void",
    "is_bad",
    "word",
]

# What no single call shows.
OF_SEVERAL_CALLS: frozenset[FailKind] = frozenset({"kept_state", "same_draw"})


def word(verdict: Verdict) -> str:
    """The verdict's word in documents."""
    return verdict.word


def is_bad(verdict: Verdict) -> bool:
    """Whether the verdict speaks against the kernel."""
    return isinstance(verdict, Failed | CompileError | RuntimeFault | Crashed | TimedOut)
