"""The speed of a right kernel in Triton's interpreter, which tells a large case from a hang.

It also tells how large cases may be so that all of them have their turn.
"""

from __future__ import annotations

from kerneltruth.cases.published import smaller_cases
from kerneltruth.clock.roofline.work import work_of
from kerneltruth.documents.case import Case
from kerneltruth.documents.verdict import Passed, TimedOut, UnsupportedHere, Verdict
from kerneltruth.oracle.allowance import OutOfTime
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.right_results import count_elements
from kerneltruth.runner.languages import TRITON_COMPILES

# The pace is known from calls of at least this many elements, or operations; in smaller ones, what
# each call takes counts.
PACED = 1024
# A call does not hang if its size alone explains this share of the deadline.
EXPLAINED = 0.5
# A call at a smaller size may take this share; after one that takes half of it, no larger is made.
SMALLER = 0.5
# Configurations of the first case may take this share of the candidate's time.
FIRST = 0.25
TOO_LARGE = "too large for Triton's interpreter"


class InterpreterPace:
    """The least seconds an element, and an operation, of right calls in the interpreter.

    A loop over rows takes as long as its task has operations, which grow faster than its elements.

    Attributes:
        is_slow: whether a call was too large for the interpreter.
    """

    def __init__(self, session: CandidateSession) -> None:
        self._session, self._task = session, session.task
        self._deadline_s = session.deadline_s
        self._is_interpreted = (
            session.candidate.language in TRITON_COMPILES and session.runner.device == "cpu"
        )
        self._least_s: list[float | None] = [None, None]
        # The sums over all right calls.
        self._right_s, self._right_amounts = 0.0, (0, 0)
        self._hung = False
        self.is_slow = False

    @property
    def is_unknown(self) -> bool:
        """Whether a call is interpreted, and none before was right and large enough to tell."""
        return self._is_interpreted and self._least_s == [None, None]

    def learn(self, expectation: Expectation, verdict: Verdict, seconds: float | None) -> None:
        """Learn from the duration of a call."""
        if self._is_interpreted and isinstance(verdict, Passed) and seconds is not None:
            self._learn(expectation, seconds, least=PACED)
            elements, operations = self._amounts(expectation)
            known = self._right_amounts
            self._right_amounts = known[0] + elements, known[1] + operations
            self._right_s += seconds

    def affordable(self, calls: int) -> int:
        """Return how many of these calls to make, each as long as those so far."""
        if not self._is_interpreted or not self._right_s:
            return calls
        return max(1, int(min(calls, FIRST * self._left_s() / self._right_s)))

    def fitted(self, case: Case, left: int) -> Case:
        """Return the case, at smaller sizes if `left` of its kind would take too long."""
        if not self._is_interpreted or not self._right_s:
            return case
        share_s = self._left_s() / max(left, 1)
        usual_s = self._usual_s(case)
        if usual_s is None or usual_s <= share_s:
            return case
        # Well within what a call may take.
        share_s = min(share_s, EXPLAINED / 2 * self._deadline_s)
        paced = [
            (smaller_s, smaller)
            for smaller in smaller_cases(self._task, case)
            if (smaller_s := self._usual_s(smaller)) is not None
        ]
        fitting = [found for found in paced if found[0] <= share_s] or paced[:1]
        return max(fitting, key=lambda found: found[0], default=(usual_s, case))[1]

    def spent(self, timeout: TimedOut) -> TimedOut | UnsupportedHere:
        """Return what it means that the candidate's time is spent."""
        if not self._is_interpreted or self._hung or not self._right_s:
            return timeout
        return UnsupportedHere(
            reason=f"too slow in Triton's interpreter for all cases in {timeout.seconds:g} s, and "
            "right in those tried; give it more with --timeout, or judge it on a GPU"
        )

    def _left_s(self) -> float:
        return self._session.allowance.left_s

    def _usual_s(self, case: Case) -> float | None:
        """Return how long a call takes at the mean pace of right ones; None if it is not judged."""
        expectation = self._session.cache.get(self._task, case)
        if expectation.invalid is not None or expectation.unrefereeable is not None:
            return None
        amounts = zip(self._amounts(expectation), self._right_amounts, strict=True)
        return max(self._right_s * own / known if known else 0.0 for own, known in amounts)

    def _learn(self, expectation: Expectation, seconds: float, *, least: int = 1) -> None:
        for i, amount in enumerate(self._amounts(expectation)):
            if amount >= least:
                known = self._least_s[i]
                pace = seconds / amount
                self._least_s[i] = pace if known is None else min(pace, known)

    def measure(self, case: Case, config: int) -> Case | None:
        """Learn from calls of a case at smaller sizes; return the largest that was right.

        Each is larger than the one before, until one takes long enough to tell: what every call
        takes would explain any timeout. A kernel that is wrong at small sizes has a pace, too.
        """
        right = None
        for smaller in smaller_cases(self._task, case):
            expectation = self._session.cache.get(self._task, smaller)
            if expectation.invalid is not None or expectation.unrefereeable is not None:
                continue
            try:
                ruling, seen, _ = self._session.call(expectation, config=config, within=SMALLER)
            except OutOfTime:
                break
            if seen.ended == "timeout":
                break
            if isinstance(ruling.verdict, Passed):
                right = smaller
            if seen.ended == "returned" and seen.seconds is not None:
                self._learn(expectation, seen.seconds)
                if seen.seconds > SMALLER / 2 * self._deadline_s:
                    break
        return right

    def explains(self, expectation: Expectation, verdict: Verdict) -> UnsupportedHere | None:
        """Return what becomes of a timeout that a case's size explains."""
        slow = self.too_large(expectation) if isinstance(verdict, TimedOut) else None
        self.is_slow |= slow is not None
        self._hung |= isinstance(verdict, TimedOut) and slow is None
        return slow

    def too_large(self, expectation: Expectation) -> UnsupportedHere | None:
        """Return why a right kernel may not return in time here, by the pace of its right calls."""
        needed_s = self._needed_s(expectation)
        if needed_s < EXPLAINED * self._deadline_s:
            return None
        return UnsupportedHere(
            reason=f"{TOO_LARGE}: about {needed_s:.2g} s; --timeout allows {self._deadline_s:g} s"
        )

    def _needed_s(self, expectation: Expectation) -> float:
        amounts = self._amounts(expectation)
        return max((p or 0.0) * a for p, a in zip(self._least_s, amounts, strict=True))

    def _amounts(self, expectation: Expectation) -> tuple[int, int]:
        """Return the elements of a call's inputs and outputs, and the task's operations."""
        elements = count_elements(expectation.inputs, [o.reference for o in expectation.outputs])
        return elements, work_of(self._task, expectation.case).flops


def is_too_large(verdict: UnsupportedHere) -> bool:
    """Tell whether this is why a case was not judged."""
    return verdict.reason.startswith(TOO_LARGE)
