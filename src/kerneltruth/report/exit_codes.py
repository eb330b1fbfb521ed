"""What a command's exit code says of its document.

0: all good. 1: the judged thing is bad. 3: no judgement was possible here, which speaks neither
for nor against what was to be judged. (2 is the user's mistake, 4 our bug: both are exceptions.)
"""

from __future__ import annotations

from kerneltruth.documents.generations import GenerateDocument
from kerneltruth.documents.runs import AuditDocument, CompareDocument, RunDocument
from kerneltruth.documents.suites import SuiteDocument, TimedSuiteDocument
from kerneltruth.documents.timing import TimeDocument
from kerneltruth.documents.verdicts import ReplayDocument

GOOD, BAD, NO_JUDGEMENT = 0, 1, 3

_NOT_JUDGED = ("infra", "unsupported_here", "unrefereeable")


def of_check(verdict: str) -> int:
    """Whether the kernel passed."""
    if verdict == "pass":
        return GOOD
    return NO_JUDGEMENT if verdict in _NOT_JUDGED else BAD


def of_audit(document: AuditDocument) -> int:
    """Whether every control is clean and every bug caught; 3 if only the machine prevented it."""
    if document.summary.good:
        return GOOD
    for kernel in document.kernels:
        passed = kernel.verdict == "pass"
        if kernel.verdict != "infra" and passed != (kernel.role == "control"):
            return BAD
    return NO_JUDGEMENT


def of_suite(document: SuiteDocument) -> int:
    """Whether every task of the suite holds."""
    return GOOD if document.summary.good else BAD


def of_timed_suite(document: TimedSuiteDocument) -> int:
    """Whether all that was timed ties, or says why not; 3 if nothing was timed."""
    if not document.timed:
        return NO_JUDGEMENT
    return GOOD if document.summary.good else BAD


def of_run(document: RunDocument, *, by_candidates: bool = False) -> int:
    """Whether every attempt has its outcome; 3 if this machine spoilt some.

    Args:
        document: of `run`.
        by_candidates: whether a candidate that is judged and not right makes it bad.
    """
    if by_candidates and any(is_wrong(c.verdict) for c in document.candidates):
        return BAD
    return NO_JUDGEMENT if document.infra else GOOD


def is_wrong(verdict: str) -> bool:
    """Whether a verdict says that the candidate is not right; what was not judged is neither."""
    return verdict != "pass" and verdict not in _NOT_JUDGED


def of_generate(document: GenerateDocument) -> int:
    """Whether all that was asked was answered; a budget that is spent is no fault."""
    return NO_JUDGEMENT if document.unanswered else GOOD


def of_time(document: TimeDocument) -> int:
    """Whether the candidate was timed, and its times hold."""
    if document.outcome in _NOT_JUDGED:
        return NO_JUDGEMENT
    return GOOD if document.outcome == "timed" else BAD


def of_replay(document: ReplayDocument) -> int:
    """Whether every finding was reproduced; 3 if the others cannot run here."""
    other = [r for r in document.results if not r.reproduced]
    if not other:
        return GOOD
    return NO_JUDGEMENT if all(r.verdict in _NOT_JUDGED for r in other) else BAD


def of_compare(document: CompareDocument) -> int:
    """Whether every kernel has one verdict in all runs."""
    return BAD if document.differing or document.missing else GOOD
