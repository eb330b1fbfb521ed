"""The speed of a right kernel in Triton's interpreter, which tells a large case from a hang."""

from __future__ import annotations

from kerneltruth.documents.verdict import Passed, TimedOut, UnsupportedHere, Verdict
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.right_results import count_elements

# The pace is known from calls of at least this many elements; in smaller ones, what each call takes
# counts.
PACED = 1024
# A call does not hang if its size alone explains this share of the deadline.
EXPLAINED = 0.5
TOO_LARGE = "too large for Triton's interpreter"


class InterpreterPace:
    """The least seconds an element of right calls in the interpreter.

    Attributes:
        is_slow: whether a call was too large for the interpreter.
    """

    def __init__(self, session: CandidateSession) -> None:
        self._deadline_s = session.deadline_s
        self._is_interpreted = (
            session.candidate.language == "triton" and session.runner.device == "cpu"
        )
        self._least_s: float | None = None
        self.is_slow = False

    def learn(self, expectation: Expectation, verdict: Verdict, seconds: float | None) -> None:
        """Learn from the duration of a call."""
        if not (self._is_interpreted and isinstance(verdict, Passed)) or seconds is None:
            return
        elements = _elements(expectation)
        if elements >= PACED:
            pace = seconds / elements
            self._least_s = pace if self._least_s is None else min(pace, self._least_s)

    def explains(self, expectation: Expectation, verdict: Verdict) -> UnsupportedHere | None:
        """Return what becomes of a timeout that a case's size explains."""
        slow = self.too_large(expectation) if isinstance(verdict, TimedOut) else None
        self.is_slow |= slow is not None
        return slow

    def too_large(self, expectation: Expectation) -> UnsupportedHere | None:
        """Return why a right kernel may not return in time here, by the pace of its right calls."""
        needed_s = (self._least_s or 0.0) * _elements(expectation)
        if needed_s < EXPLAINED * self._deadline_s:
            return None
        return UnsupportedHere(
            reason=f"{TOO_LARGE}: about {needed_s:.2g} s; --timeout allows {self._deadline_s:g} s"
        )


def is_too_large(verdict: UnsupportedHere) -> bool:
    """Tell whether this is why a case was not judged."""
    return verdict.reason.startswith(TOO_LARGE)


def _elements(expectation: Expectation) -> int:
    return count_elements(expectation.inputs, [o.reference for o in expectation.outputs])
