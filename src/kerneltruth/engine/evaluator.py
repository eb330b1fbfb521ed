"""Evaluate one candidate: judged, its failure explained, and run through the peers' checks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from kerneltruth.cases.layouts import inspect
from kerneltruth.clock.device.lock import device_for_checks
from kerneltruth.clock.protocol.inputs import rehearsal_arguments
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.documents.lines import PeerVerdict
from kerneltruth.documents.records import Attempt, Judgement
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.documents.verdict import CompileError, Crashed, Infra, Passed, TimedOut, said_of
from kerneltruth.engine.devices import begin
from kerneltruth.engine.stages import NOT_RUN, call_stage
from kerneltruth.errors import ReferenceLost
from kerneltruth.explain.diagnosis import Diagnosis, DiagnosisEffort, diagnose, not_in_time
from kerneltruth.oracle.allowance import OutOfTime
from kerneltruth.oracle.attempt import AttemptEnded, CaseJudged
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.eager_checks import EagerChecks
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.rehearsal import rehearse
from kerneltruth.oracle.second_round import SecondRoundBegun, judge_candidate
from kerneltruth.peers import Answer, Draw, DrawCache, answer, run_all
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.languages import TRITON_COMPILES
from kerneltruth.suites.catalog import SuiteTasks
from kerneltruth.suites.pytorch import unaided_function
from kerneltruth.tasks.registry import find, stay_open
from kerneltruth.tasks.spec import Task

# Effort spent on explaining a failure: where one file is judged, and where many are.
FULL = DiagnosisEffort(evaluations=200, seconds=20.0)
BRIEF = DiagnosisEffort(evaluations=60, seconds=1.0)
# Seconds for compiling at the timed shapes: others wait for the device.
REHEARSAL_S = 60.0
# Seconds that all calls of the peers' checks may take: later ones count as hung.
PEERS_S = 600.0
PASSED_FIRST = "It passed the first round but failed the second, on new cases in a fresh process."


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequest:
    """One candidate to be evaluated.

    Attributes:
        peer_seed: from which the peers' checks draw; None leaves them out.
        effort: what explaining a failure may cost; None leaves it out.
        obligation: of which a failure is explained where none decides; None leaves it out.
        timed: whether a right kernel is to be timed afterwards.
    """

    name: str
    task: str
    candidate: Candidate
    plan: Plan
    peer_seed: int | None = None
    effort: DiagnosisEffort | None = None
    obligation: str | None = None
    timed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What an evaluation yields.

    Attributes:
        perf: the perf stage; None where the candidate is yet to be timed, or is not timed at all.
        seconds: that judging it and explaining its failure took.
    """

    attempt: Attempt
    tags: tuple[str, ...] = ()
    peer_checks: dict[str, PeerVerdict] = field(default_factory=dict)
    perf: CandidateTimes | None = None
    seconds: float = 0.0

    @property
    def returned(self) -> bool:
        """Return whether the candidate loads, has its entry, and returns from one call."""
        return call_stage(self.attempt).outcome == "pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisBegun:
    """Event: the cases are judged, and a failure is about to be explained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateJudged:
    """Event: the candidate has its verdict, and its failure is explained; always the last.

    Attributes:
        cases: how many were judged.
        diagnosis: of a failure, if it was to be explained.
    """

    attempt: Attempt
    cases: int
    diagnosis: Diagnosis | None = None


def judge_and_diagnose(
    session: CandidateSession, job: EvaluationRequest
) -> Iterator[CaseJudged | SecondRoundBegun | DiagnosisBegun | CandidateJudged]:
    """Judge a candidate on the planned cases; minimize and localize its failure."""
    judgements: list[Judgement] = []
    attempt: Attempt | None = None
    for event in judge_candidate(session, job.plan):
        match event:
            case AttemptEnded():
                attempt = event.attempt
                continue
            case CaseJudged(judgement=judgement):
                judgements.append(judgement)
        yield event
    assert attempt is not None
    planted = attempt.profile.get(job.obligation or "")
    failure = attempt.failure or (planted.failure if planted else None)
    found: Diagnosis | None = None
    if failure is not None and job.effort is not None:
        yield DiagnosisBegun()
        others = [j for j in judgements if j is not failure]
        session.allowance.left_s = job.effort.seconds + 2 * job.plan.deadline_s
        with contextlib.suppress(OutOfTime):
            found = diagnose(session, failure, others, job.effort)
    if found is None:
        attempt = replace(attempt, explanation=without_diagnosis(attempt))
    else:
        attempt = found.added_to(attempt)
    if attempt.second_round is not None and attempt.second_round.verdict != "pass":
        said = f"{attempt.explanation} {PASSED_FIRST}".strip()
        attempt = replace(attempt, explanation=said)
    yield CandidateJudged(attempt=attempt, cases=len(judgements), diagnosis=found)


def not_timed(attempt: Attempt, device: str) -> CandidateTimes | None:
    """Return the perf stage of a candidate that is not timed; None if it is to be timed."""
    if not isinstance(attempt.verdict, Passed):
        stage = "exe" if call_stage(attempt).outcome == "pass" else "call"
        return CandidateTimes(outcome=NOT_RUN, detail=f"{stage}: {attempt.verdict.word}")
    if device == "cpu":
        return CandidateTimes(outcome=NOT_RUN, detail="no GPU: `run` times on one only")
    if attempt.own_weights is not None:
        return CandidateTimes(outcome=NOT_RUN, detail="a model with its own weights is not timed")
    if attempt.candidate.language == "numpy":
        return CandidateTimes(outcome=NOT_RUN, detail="a NumPy kernel runs on the host")
    return None


class Evaluator:
    """A runner, and the expectations that candidates of one task share.

    Made before judge processes are forked, so that they share its warm zygotes.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        device: str = "cpu",
        targets: tuple[str, ...] = (),
        cache_root: Path | None = None,
        runner: Runner | None = None,
        sessions: Callable[..., CandidateSession] = CandidateSession,
        untimed: Callable[[Attempt, str], CandidateTimes | None] = not_timed,
        suite: SuiteTasks | None = None,
    ) -> None:
        """Warm nothing up yet; make a runner of the device if none is given.

        `sessions` opens a candidate's session; `untimed` is called as `not_timed`. `suite` has its
        large references on this device, where the suite that is open has them on another.
        """
        self._sessions, self._untimed, self._suite = sessions, untimed, suite
        self.runner = runner or Runner(
            device=device,
            targets=targets if device == "cpu" else (),
            cache_root=cache_root,
        )
        self.cache = ExpectationCache(policy)
        self.eager_checks = EagerChecks(self.runner, self.cache, unaided_function)
        self.draws = DrawCache()

    def start(self) -> None:
        """Begin to warm up, and return at once."""
        begin(self.runner)

    def warm(self) -> None:
        """Wait until the runner is warm: judge processes forked after this share it."""
        self.runner.versions()

    def close(self) -> None:
        """End every child."""
        self.eager_checks.close()
        self.runner.close()

    def open_suite(self) -> None:
        """Let the tasks of this device's own suite be found, in a judge's process."""
        if self._suite is not None:
            stay_open(self._suite.name, self._suite)

    def evaluate(
        self, job: EvaluationRequest, report: Callable[[int], None] = lambda count: None
    ) -> Evaluation:
        """Judge one candidate; `report(n)` is called as cases are judged."""
        self.open_suite()
        task = find(job.task)
        with device_for_checks(self.runner.device) if job.timed else contextlib.nullcontext():
            try:
                with self._sessions(
                    task,
                    job.candidate,
                    self.runner,
                    self.cache,
                    deadline_s=job.plan.deadline_s,
                    # A process that waits to time gets the device alone here.
                    ends_first=job.timed,
                    eager_checks=self.eager_checks,
                ) as session:
                    return self._evaluate(session, task, job, report)
            except MemoryError as error:
                return lost(job, f"the judge ran out of memory: {error}")
            except ReferenceLost as error:
                return lost(job, str(error))
            finally:
                if job.timed:
                    self.eager_checks.close(wait=True)

    def _evaluate(
        self,
        session: CandidateSession,
        task: Task,
        job: EvaluationRequest,
        report: Callable[[int], None],
    ) -> Evaluation:
        began = time.monotonic()
        judged: CandidateJudged | None = None
        for event in judge_and_diagnose(session, job):
            match event:
                case CaseJudged():
                    report(1)
                case CandidateJudged():
                    judged = event
        assert judged is not None
        peer_checks: dict[str, PeerVerdict] = {}
        if job.peer_seed is not None:
            session.allowance.left_s = max(job.plan.seconds, PEERS_S)
            peer_checks = run_all(
                task,
                lambda draw: self._answer(session, task, draw),
                job.peer_seed,
                cache=self.draws,
            )
        perf = self._untimed(judged.attempt, self.runner.device) if job.timed else None
        if job.timed and perf is None and self.runner.keeps_compiled:
            # Many compile in parallel here, whereas timing has the device alone.
            _compile_ahead(session, task)
        tags = judged.diagnosis.tags if judged.diagnosis else ()
        return Evaluation(
            attempt=judged.attempt,
            tags=tags,
            peer_checks=peer_checks,
            perf=perf,
            seconds=time.monotonic() - began,
        )

    def _answer(self, session: CandidateSession, task: Task, draw: Draw) -> Answer:
        observation, placed = session.call_unjudged(draw.case, draw.inputs, poison=draw.turn)
        mutated = [
            inspect(placed[name], observation.buffers.get(name, placed[name].buffer)).tensor
            for name in task.mutates
        ]
        return answer(observation, mutated)


def _compile_ahead(session: CandidateSession, task: Task) -> None:
    """Compile into the candidate's cache what will be timed."""
    if session.candidate.language in TRITON_COMPILES:
        calls = (rehearsal_arguments(task, case) for case in timed_cases(task))
        rehearse(session.child, calls, budget_s=REHEARSAL_S)


def without_diagnosis(attempt: Attempt) -> str:
    """Return a verdict's own explanation: of the load, or of the case that failed.

    Empty where there is nothing to say but the verdict.
    """
    failure = attempt.failure
    match attempt.verdict:
        case CompileError(detail=detail) | Crashed(detail=detail):
            return detail
        case TimedOut(seconds=seconds) if failure is None and attempt.cases:
            untried = ", ".join(
                k for k, e in attempt.profile.items() if e.decisive and e.status == "not_tried"
            )
            return f"The candidate's time, {seconds:g} s, is spent: {untried} not tried."
        case TimedOut(seconds=seconds) if failure is None:
            return f"Did not load within {seconds:g} s."
        case TimedOut(seconds=seconds) if failure is not None:
            return not_in_time(failure, seconds)
        case _:
            return ""


def detail_of_attempt(attempt: Attempt) -> str:
    """Return the reason of a verdict; of a timeout, what did not end in time, and its limit."""
    if isinstance(attempt.verdict, TimedOut):
        return without_diagnosis(attempt)
    return said_of(attempt.verdict)


def lost(job: EvaluationRequest, reason: str) -> Evaluation:
    """Return the result of a job whose judge was lost."""
    verdict = Infra(reason=reason)
    attempt = Attempt(
        task=job.task, candidate=job.candidate.ref, verdict=verdict, cases=0, failed=0
    )
    return Evaluation(attempt=attempt)
