"""Derive a command's exit code from its document.

Code 0: all good. 1: the judged thing is bad. 3: no judgement was possible here, which says nothing
about the judged thing. (2 is the user's mistake and 4 our bug: both are exceptions, but for a path
among several that holds nothing to judge.)
"""

from __future__ import annotations

from kerneltruth.documents.checks import ChecksDocument, ReplayDocument
from kerneltruth.documents.exploits import ExploitsDocument
from kerneltruth.documents.generations import GenerateDocument
from kerneltruth.documents.runs import AuditDocument, CompareDocument, RunDocument
from kerneltruth.documents.suites import SuiteDocument, TimedSuiteDocument
from kerneltruth.documents.timing import TimeDocument
from kerneltruth.documents.verdict import NOT_JUDGED

GOOD, BAD, MISUSED, NO_JUDGEMENT = 0, 1, 2, 3


def of_check(verdict: str) -> int:
    """Return 0 if the kernel passed."""
    if verdict == "pass":
        return GOOD
    return NO_JUDGEMENT if verdict in NOT_JUDGED else BAD


def of_checks(document: ChecksDocument) -> int:
    """Return the worst of several files: refused, wrong, not judged, passed."""
    counts = document.counts
    if counts.refused:
        return MISUSED
    if counts.failed:
        return BAD
    return NO_JUDGEMENT if counts.not_judged else GOOD


def of_audit(document: AuditDocument) -> int:
    """Return 0 if controls are clean and bugs caught; 3 if only the machine prevented it."""
    if document.summary.good:
        return GOOD
    for kernel in document.kernels:
        good = kernel.caught if kernel.role == "bug" else kernel.passed and not kernel.hazards
        if kernel.verdict != "infra" and not good:
            return BAD
    return NO_JUDGEMENT


def of_exploits(document: ExploitsDocument) -> int:
    """Return 0 if every exploit that ran ended as its file says, else 1; 3 if none ran."""
    if not document.summary.run:
        return NO_JUDGEMENT
    return GOOD if document.summary.good else BAD


def of_suite(document: SuiteDocument) -> int:
    """Return 0 if every task of the suite holds."""
    return GOOD if document.summary.good else BAD


def of_timed_suite(document: TimedSuiteDocument) -> int:
    """Return 0 if all timed shapes tie, or have a known reason; 3 if nothing was timed."""
    if not document.timed:
        return NO_JUDGEMENT
    return GOOD if document.summary.good else BAD


def of_run(document: RunDocument, *, by_candidates: bool = False) -> int:
    """Return 0 if every attempt has its verdict; 3 if this machine spoilt some.

    With `by_candidates`, a judged candidate that is not right gives 1.
    """
    if by_candidates and any(is_wrong(c.verdict) for c in document.candidates):
        return BAD
    return NO_JUDGEMENT if document.infra else GOOD


def is_wrong(verdict: str) -> bool:
    """Return whether a verdict says that the candidate is not right; an unjudged one is neither."""
    return verdict != "pass" and verdict not in NOT_JUDGED


def of_generate(document: GenerateDocument) -> int:
    """Return 0 if every request was answered; a spent budget is no fault."""
    return NO_JUDGEMENT if document.unanswered else GOOD


def of_time(document: TimeDocument) -> int:
    """Return 0 if the candidate was timed, and its times hold."""
    if document.outcome in NOT_JUDGED:
        return NO_JUDGEMENT
    return GOOD if document.outcome == "timed" else BAD


def of_replay(document: ReplayDocument) -> int:
    """Return 0 if every finding was reproduced; 3 if the others cannot run here."""
    other = [r for r in document.results if not r.reproduced]
    if not other:
        return GOOD
    return NO_JUDGEMENT if all(r.verdict in NOT_JUDGED for r in other) else BAD


def of_compare(document: CompareDocument) -> int:
    """Return 0 if every kernel has one verdict in all runs."""
    return BAD if document.differing or document.missing else GOOD
