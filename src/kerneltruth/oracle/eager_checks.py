"""Try PyTorch's own function on a case before a candidate fails by it.

The call, guards and layout are the same. If PyTorch itself raises, writes where the task forbids
it, or returns another form than the task promises, the case says nothing about kernels. The float64
reference cannot show all of that: an operator may refuse only half precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kerneltruth.documents.verdict import (
    Crashed,
    Declined,
    Failed,
    RuntimeFault,
    TimedOut,
    Verdict,
    is_bad,
)
from kerneltruth.oracle.arguments import USUAL, Surroundings
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.judge import is_of_form
from kerneltruth.oracle.recent import Recent
from kerneltruth.oracle.repeated_calls import differ
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.spec import Task

# PyTorch's messages about an operator that the device's backend lacks in a dtype.
_NOT_THERE = ("not implemented for", "on the CPU", "on CPU", "NotImplementedError")
_KEPT_BYTES = 2**24
# Deadline of a call that only shows what PyTorch's own function draws.
DRAW_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnCall:
    """How a call of PyTorch's own function ended in a case.

    Attributes:
        objection: why the case decides nothing; None where PyTorch is right in it.
        lacking: whether all that was seen is that this device has no such operator.
        of_form: whether only the form of a result is wrong, and its values are right.
    """

    objection: str | None = None
    lacking: bool = False
    of_form: bool = False


class EagerChecks:
    """PyTorch's own functions, one at a time, in one child; candidates share a task's results.

    `source` returns PyTorch's own function as a candidate; None where a task has none.
    """

    def __init__(
        self,
        runner: Runner,
        cache: ExpectationCache,
        source: Callable[[Task], Candidate | None],
    ) -> None:
        self._runner = runner
        self._cache = cache
        self._source = source
        self._open: CandidateSession | None = None
        self._seen: Recent[_OwnCall] = Recent(lambda _: 0, limit_bytes=_KEPT_BYTES)

    def objection(
        self,
        task: Task,
        expectation: Expectation,
        verdict: Verdict,
        *,
        deadline_s: float,
        around: Surroundings = USUAL,
    ) -> str | None:
        """Why the case decides nothing about a candidate with this verdict; None if it does.

        A model of PyTorch's may keep state, as the task's own does: `around` says so.
        """
        seen = self._seen.get(
            f"{task.key}>{expectation.case.identity}>{around.reused}",
            lambda: self._look(task, expectation, deadline_s, around),
        )
        # A CPU may lack an operator that a GPU has. That excuses only a candidate that is refused
        # too.
        if seen.lacking and not isinstance(verdict, RuntimeFault):
            return None
        # A definition's own program need not return what the definition promises.
        if seen.of_form and task.foreign and is_bad(verdict) and not is_of_form(verdict):
            return None
        return seen.objection

    def draws_differ(self, task: Task, expectation: Expectation, draws: int) -> bool:
        """Whether several of PyTorch's own calls all give different results."""
        session = self._session(task, DRAW_S)
        return session is not None and differ(session, expectation, draws)

    def close(self, *, wait: bool = False) -> None:
        """End the child; another is started when it is needed."""
        if self._open is not None:
            self._open.close(wait=wait)
            self._open = None

    def _look(
        self, task: Task, expectation: Expectation, deadline_s: float, around: Surroundings
    ) -> _OwnCall:
        session = self._session(task, deadline_s)
        if session is None:
            return _OwnCall()
        ruling, _, _ = session.call(expectation, around=Surroundings(reused=around.reused))
        said = _objection(ruling.with_form)
        if said is None:
            return _OwnCall()
        lacking = isinstance(ruling.verdict, RuntimeFault | Declined) and any(
            words in said for words in _NOT_THERE
        )
        return _OwnCall(
            objection=f"PyTorch's own function {said}",
            lacking=lacking and self._runner.device == "cpu",
            of_form=not is_bad(ruling.verdict),
        )

    def _session(self, task: Task, deadline_s: float) -> CandidateSession | None:
        if self._open is not None and self._open.task.key == task.key:
            return self._open
        candidate = self._source(task)
        if candidate is None:
            return None
        if self._open is not None and not (task.foreign or self._open.task.foreign):
            self._open = self._open.followed_by(task, candidate, deadline_s=deadline_s)
        else:
            # A problem's own model is a user's code and gets its own process.
            self.close()
            self._open = CandidateSession(
                task, candidate, self._runner, self._cache, deadline_s=deadline_s
            )
        return self._open


def _objection(verdict: Verdict) -> str | None:
    match verdict:
        case RuntimeFault(error=error, detail=detail):
            return f"raises {error}: {detail}".splitlines()[0]
        case Declined(reason=reason):
            return f"raises {reason}".splitlines()[0]
        case Crashed(detail=detail):
            return f"dies: {detail}"
        case TimedOut(seconds=seconds):
            return f"does not return within {seconds:g} s"
        case Failed(detail=detail):
            return f"is not accepted either: {detail}"
        case _:
            return None
