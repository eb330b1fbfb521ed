"""A candidate, its child processes, and what they have shown so far.

`case_loop` runs its cases here. The explaining layers above make further calls of the same
candidate with `CandidateSession.call`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kerneltruth.cases.layouts import Placed
from kerneltruth.cases.materialize import Inputs
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Headers
from kerneltruth.documents.verdict import (
    CompileError,
    Hack,
    Passed,
    Verdict,
)
from kerneltruth.oracle.allowance import Allowance, OutOfTime
from kerneltruth.oracle.arguments import USUAL, LaidOut, Surroundings, contents_of, poison_of
from kerneltruth.oracle.contradictions import false_claim
from kerneltruth.oracle.dtypes import DTYPES, NOT_IN_NUMPY
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.gradients import differentiated, judged_as
from kerneltruth.oracle.judge import Ruling, changed_later, rule, without_return
from kerneltruth.oracle.launches_seen import LaunchesSeen
from kerneltruth.oracle.model_weights import ModelWeights
from kerneltruth.oracle.target_compiler import COMPILING_S, TargetCompiler
from kerneltruth.oracle.traces import Traces
from kerneltruth.runner.arguments import Argument
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.child.models import CONSTRUCTED
from kerneltruth.runner.host import Runner
from kerneltruth.runner.observation import Launch, Observation
from kerneltruth.runner.protocol import EarlierContents, Rows
from kerneltruth.runner.session import Session
from kerneltruth.runner.source_numbers import thresholds
from kerneltruth.tasks.spec import Task

if TYPE_CHECKING:
    from kerneltruth.oracle.eager_checks import EagerChecks

# Seconds of a call whose kernels do nothing.
IDLE_S = 5.0
# How many bytes wrong results may exceed the expected ones by and still be compared.
SPARE_BYTES = 64 * 2**20


class CandidateSession:
    """A candidate, its child processes, and what they have shown so far.

    Attributes:
        allowance: how long its calls may still take.
    """

    def __init__(
        self,
        task: Task,
        candidate: Candidate,
        runner: Runner,
        cache: ExpectationCache,
        *,
        deadline_s: float,
        ends_first: bool = False,
        eager_checks: EagerChecks | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A session; no child is started yet. The clock measures calls.

        With `ends_first`, closing the session waits until its children have ended. Eager checks run
        before the candidate fails.
        """
        self._ends_first, self._clock = ends_first, clock
        self.task = task
        self.candidate = replace(candidate, pretrained=task.pretrained)
        self.runner = runner
        self.cache = cache
        self.deadline_s = deadline_s
        self.eager_checks = eager_checks
        # By identity of the case and number of the configuration.
        self.examined: tuple[tuple[str, int], Ruling] | None = None
        self._traces = Traces()
        self._last: tuple[Expectation, Verdict] | None = None
        self._lean = False
        self.targets = TargetCompiler(task, candidate, runner, cache.layouts)
        self.launches = LaunchesSeen(candidate)
        self.thresholds = thresholds(candidate.source)
        self.allowance = Allowance(self._own_time)
        self.weights = ModelWeights(task)
        self._child: Session | None = None

    def __enter__(self) -> CandidateSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, *, wait: bool = False) -> None:
        """End the candidate's children; without `wait`, only request it."""
        self.traces()
        wait = wait or self._ends_first
        if self._child is not None:
            self._child.close(wait=wait)
        self._child = None
        self.targets.close(wait=wait)

    def begin_second_round(self) -> None:
        """Leave the next call to a fresh child, and forget what earlier ones have shown of work."""
        self.close()
        self.examined = None
        self.launches.forget_work()
        self._traces = Traces()

    def traces(self) -> Traces:
        """Return what calls and children have left behind in this round."""
        if self._child is not None:
            self._traces.of_child(self._child)
        return self._traces

    def followed_by(
        self, task: Task, candidate: Candidate, *, deadline_s: float
    ) -> CandidateSession:
        """Return a session of another candidate in the child of this one, which ends with it.

        Only for the judge's own candidates: the next one finds the state that the last one left.
        """
        successor = CandidateSession(
            task, candidate, self.runner, self.cache, deadline_s=deadline_s
        )
        successor._child, self._child = self._child, None
        if successor._child is not None:
            successor._child.load_instead(candidate)
        return successor

    def _own_time(self) -> float:
        """Seconds on a clock that stands still while the child waits for a processor."""
        return self._clock() - (0.0 if self._child is None else self._child.queued_s)

    @property
    def child(self) -> Session:
        """The candidate's child, loading or loaded."""
        if self._child is None:
            self._child = self.runner.open(self.candidate)
        return self._child

    def loaded(self) -> Observation:
        """Load the candidate in a fresh child, unless it is loaded; return how that ended."""
        seen = self.child.loaded
        self._lean |= seen.lean
        return seen

    @property
    def headers(self) -> Headers | None:
        """The headers it is built with: only those it names, or all; None if nothing is built."""
        if self.candidate.language != "cuda" or self.runner.device == "cpu":
            return None
        return "lean" if self._lean else "full"

    def call(
        self,
        expectation: Expectation,
        *,
        config: int = 0,
        around: Surroundings = USUAL,
        earlier: Sequence[Inputs] = (),
        in_sight: bool = False,
        within: float = 1.0,
    ) -> tuple[Ruling, Observation, dict[str, Placed]]:
        """Run one case, within a share of the deadline, and rule on it.

        A result that changes with its surroundings is wrong.

        Before, the candidate is called on `earlier` inputs in the same memory; see
        `protocol.Call`.

        Raises:
            OutOfTime: the candidate's time is spent.
        """
        # A host that waits for its kernels' writes may wait forever.
        usual_s = min(self.deadline_s, IDLE_S) if around.idle else within * self.deadline_s
        self.allowance.of(usual_s)
        with self.allowance.spent():
            self.loaded()
        deadline_s = self.allowance.of(usual_s)
        laid = self._laid(expectation, expectation.inputs, around)
        before = tuple(contents_of(self._laid(expectation, i, around), laid) for i in earlier)
        sent = self._clock()
        with self.allowance.spent():
            observation = self._observed(
                expectation,
                laid.arguments,
                around,
                config=config,
                earlier=before,
                in_sight=in_sight,
                deadline_s=deadline_s,
            )
        waited_s, arrays = self._clock() - sent, self.candidate.language == "numpy"
        claim = false_claim(observation, waited_s=waited_s, arrays=arrays)
        if observation.ended == "timeout" and deadline_s < usual_s:
            raise OutOfTime
        self._note(observation, expectation.case, around)
        observation = self._not_excused(self.seen(observation), laid.arguments)
        ruling = self._ruling(expectation, laid.placed, observation)
        if claim is not None:
            ruling = replace(ruling, verdict=claim)
        self._last = expectation, ruling.verdict
        usual = around == USUAL and not (earlier or self.task.random)
        if usual and isinstance(ruling.verdict, Passed):
            self._traces.of_result(f"{expectation.case.identity} {config}", ruling.outputs)
        return ruling, observation, laid.placed

    def _laid(self, expectation: Expectation, inputs: Inputs, around: Surroundings) -> LaidOut:
        return self.cache.layouts.of(self.task, expectation.case, inputs, around)

    def _observed(
        self,
        expectation: Expectation,
        arguments: Sequence[Argument],
        around: Surroundings,
        *,
        config: int,
        earlier: tuple[EarlierContents, ...],
        in_sight: bool,
        deadline_s: float,
    ) -> Observation:
        """Have the loaded child make a call."""
        assert self._child is not None
        counts = self.launches.may_show_work
        return self._child.call(
            arguments,
            poison=poison_of(expectation.case, 0),
            small_poison=around.small_poison,
            small_guards=around.small_guards,
            config=config,
            draw=around.draw,
            reused=around.reused,
            gradients_of=self._gradients_of(expectation.case),
            earlier=earlier,
            in_sight=in_sight,
            kernels="idle" if around.idle else "count" if counts else "run",
            most=_most(expectation),
            deadline_s=deadline_s,
        )

    def _ruling(
        self, expectation: Expectation, placed: dict[str, Placed], observation: Observation
    ) -> Ruling:
        assert self._child is not None
        ruling = rule(
            judged_as(self.task, expectation.case),
            expectation,
            placed,
            observation,
            deadline_s=self.deadline_s,
            device=self._child.device,
        )
        return without_return(ruling, self.candidate)

    def changed_later(self) -> tuple[Expectation, Hack] | None:
        """The last call and the verdict on it, if its memory has changed since it was right."""
        if self._last is None or self._child is None:
            return None
        expectation, verdict = self._last
        verdict = changed_later(self.seen(self._child.after_last()), verdict)
        return (expectation, verdict) if isinstance(verdict, Hack) else None

    def _note(self, observation: Observation, case: Case, around: Surroundings) -> None:
        """Keep what a call shows beside its result."""
        self.launches.note(observation, case, idle=around.idle)
        self._lean |= observation.lean
        self._traces.of_call(observation)

    def seen(self, observation: Observation) -> Observation:
        """Return what is judged of an observation: all, unless an audit turns a defence off."""
        return observation

    def call_rows(
        self,
        arguments: Sequence[Argument],
        case: Case,
        *,
        rows: Rows,
        free_bytes: int,
        deadline_s: float,
    ) -> Observation:
        """Call the candidate on inputs too large to be sent; observe some rows of its results."""
        self.loaded()
        assert self._child is not None
        return self._child.call(
            arguments,
            poison=poison_of(case, 0),
            rows=rows,
            free_bytes=free_bytes,
            deadline_s=deadline_s,
        )

    def _gradients_of(self, case: Case) -> tuple[str, ...]:
        if not self.task.wants_gradients(case.settings):
            return ()
        return tuple(spec.name for spec in differentiated(self.task, case))

    def cannot_take(self, expectation: Expectation) -> str | None:
        """Why the candidate's language has no such inputs, judged without a call."""
        if self.candidate.language != "numpy":
            return None
        if self.task.wants_gradients(expectation.case.settings):
            return "NumPy has no gradients"
        given = {t.dtype for t in expectation.inputs.tensors.values() if t is not None}
        lacking = next((name for name in NOT_IN_NUMPY if DTYPES[name] in given), None)
        return None if lacking is None else f"NumPy has no dtype {lacking}"

    def _not_excused(self, observation: Observation, arguments: Sequence[Argument]) -> Observation:
        """On a GPU nothing is interpreted, so `unsupported` there is an exception like any other.

        Only a model may still lack a place for the judge's weights.
        """
        on_gpu = self.runner.device != "cpu" and self.candidate.language != "numpy"
        is_model = any(a.name == CONSTRUCTED for a in arguments)
        if observation.ended != "unsupported" or not on_gpu or is_model:
            return observation
        return replace(observation, ended="raised")

    def call_unjudged(
        self, case: Case, inputs: Inputs, *, poison: int = 0
    ) -> tuple[Observation, dict[str, Placed]]:
        """Call the candidate on given inputs."""
        laid = self.cache.layouts.of(self.task, case, inputs)
        self._last = None
        try:
            deadline_s = self.allowance.of(self.deadline_s)
        except OutOfTime:
            return Observation(ended="timeout"), laid.placed
        with self.allowance.spent():
            self.loaded()
            assert self._child is not None
            observation = self._child.call(
                laid.arguments, poison=poison_of(case, poison), deadline_s=deadline_s
            )
        return observation, laid.placed

    def compile(
        self, expectation: Expectation, launches: tuple[Launch, ...], config: int
    ) -> CompileError | None:
        """Compile a call's new launches for every target; return the first refusal.

        Raises:
            OutOfTime: the candidate's time is spent.
        """
        with self.allowance.spent():
            return self.targets.compile(
                expectation,
                launches,
                config,
                deadline_s=lambda: self.allowance.of(max(self.deadline_s, COMPILING_S)),
            )

    def objection(
        self, expectation: Expectation, verdict: Verdict, *, around: Surroundings = USUAL
    ) -> str | None:
        """Why this case does not fail the candidate, judging by PyTorch's own function."""
        if self.eager_checks is None:
            return None
        return self.eager_checks.objection(
            self.task, expectation, verdict, deadline_s=self.deadline_s, around=around
        )

    @property
    def is_model(self) -> bool:
        """Whether the candidate is a class, with one instance for many calls."""
        entry = re.escape(self.candidate.entry)
        return re.search(rf"^class\s+{entry}\b", self.candidate.source, re.MULTILINE) is not None


def _most(expectation: Expectation) -> int:
    """Return how many bytes results may take: the expected ones in any dtype, and some more."""
    return SPARE_BYTES + 16 * sum(want.reference.numel() for want in expectation.outputs)
