"""The standalone script of a failure's smallest case."""

from __future__ import annotations

from kerneltruth.documents.case import Case
from kerneltruth.documents.verdict import OF_SEVERAL_CALLS, Failed, Verdict, is_bad
from kerneltruth.explain.reproducer.script import Seen, script
from kerneltruth.explain.shown import seen_lines
from kerneltruth.oracle.candidate_session import CandidateSession


def script_of(
    session: CandidateSession,
    minimal: Case,
    verdict: Verdict,
    *,
    explanation: str,
    explained: Case,
    config: int = 0,
) -> str:
    """Run the smallest case of a failure once more, and return the script that shows it.

    The explanation is of the case `explained`. `config` says which configuration of an autotuned
    kernel failed.
    """
    small = session.cache.get(session.task, minimal)
    ruling, _, placed = session.call(small, config=config)
    shown = _shown(verdict, ruling.verdict)
    if explanation and explained.summary() != minimal.summary():
        explanation = f"On {explained.summary()}: {explanation}"
    return script(
        task=session.task,
        candidate=session.candidate,
        expectation=small,
        placed=placed,
        verdict=shown,
        explanation=explanation,
        config=config,
        seen=Seen(lines=seen_lines(small, ruling, shown), device=session.runner.device),
    )


def _shown(verdict: Verdict, smaller: Verdict) -> Verdict:
    """Return the verdict that a script shows: on the smallest case, if one call shows it."""
    several = isinstance(verdict, Failed) and verdict.kind in OF_SEVERAL_CALLS
    return smaller if is_bad(smaller) and not several else verdict
