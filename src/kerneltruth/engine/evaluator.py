"""One candidate heard: judged, explained, and put before the peers' checks, with one runner."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch

from kerneltruth.cases.layouts import inspect
from kerneltruth.clock.device.lock import checking, timing
from kerneltruth.clock.protocol.inputs import rehearsed
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.commands.head_start import begin, cache_root
from kerneltruth.engine.stages import NOT_RUN, call_stage
from kerneltruth.explain.diagnosis import Effort, diagnose
from kerneltruth.oracle.attempt import Attempt, AttemptEnded, CandidateRef, Judgement
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.controls import Controls
from kerneltruth.oracle.course import Plan, try_candidate
from kerneltruth.oracle.expectation import ExpectationCache
from kerneltruth.oracle.trial import Trial
from kerneltruth.oracle.verdict import (
    CompileError,
    Crashed,
    Infra,
    Passed,
    TimedOut,
    word,
)
from kerneltruth.peers import Draw, DrawCache, PeerVerdict, answer, run_all
from kerneltruth.peers.answers import Answer
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.foreign import is_foreign, register_at
from kerneltruth.suites.pytorch import control_of
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import Task

# For what a candidate compiles at the shapes that are timed: others wait for the device.
REHEARSAL_S = 60.0
# Of so many tasks the baselines get ready side by side, while those of others are timed.
PART = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One candidate to be heard.

    Attributes:
        name: how results call it.
        task: name of the task.
        baseline_seed: from which the peers' checks draw; None leaves them out.
        effort: what explaining a failure may cost; None leaves it out.
        timed: whether a right kernel is to be timed afterwards.
    """

    name: str
    task: str
    candidate: Candidate
    plan: Plan
    baseline_seed: int | None = None
    effort: Effort | None = None
    timed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a hearing yields.

    Attributes:
        perf: the perf stage; None where the candidate is yet to be timed, or is not timed at all.
    """

    attempt: Attempt
    tags: tuple[str, ...] = ()
    baselines: dict[str, PeerVerdict] = field(default_factory=dict)
    perf: dict[str, Any] | None = None


class Court:
    """A runner, and the expectations that candidates of one task share.

    Made before judge processes are forked, so that they share its warm zygotes.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        device: str = "cpu",
        targets: tuple[str, ...] = (),
        work_root: Path | None = None,
        cache_root: Path | None = None,
        runner: Runner | None = None,
    ) -> None:
        # Judges work side by side, a process each; threads within them would only be in the way.
        torch.set_num_threads(1)
        self.runner = runner or Runner(
            device=device,
            targets=targets if device == "cpu" else (),
            work_root=work_root,
            cache_root=cache_root,
        )
        self.cache = ExpectationCache(policy)
        self.controls = Controls(self.runner, self.cache, control_of)
        self.draws = DrawCache()

    def start(self) -> None:
        """Begin to warm up, and return at once."""
        begin(self.runner)

    def warm(self) -> None:
        """Wait until the runner is warm: judge processes forked after this share it."""
        self.runner.versions()

    def close(self) -> None:
        """End every child."""
        self.controls.close()
        self.runner.close()

    def hear(self, job: Job, report: Callable[[int], None] = lambda count: None) -> Heard:
        """Judge one candidate; `report(n)` is called as cases are judged."""
        task = find(job.task)
        with checking(self.runner.device) if job.timed else contextlib.nullcontext():
            return self._judge(task, job, report)

    def _judge(self, task: Task, job: Job, report: Callable[[int], None]) -> Heard:
        try:
            with Trial(
                task,
                job.candidate,
                self.runner,
                self.cache,
                deadline_s=job.plan.deadline_s,
                # Whoever waits for the device has it alone then.
                ends_first=job.timed,
                controls=self.controls,
            ) as trial:
                return self._hear(trial, task, job, report)
        except MemoryError as error:
            return lost(job, f"the judge ran out of memory: {error}")
        finally:
            if job.timed:
                self.controls.close(wait=True)

    def _hear(self, trial: Trial, task: Task, job: Job, report: Callable[[int], None]) -> Heard:
        judgements: list[Judgement] = []
        attempt: Attempt | None = None
        for event in try_candidate(trial, job.plan):
            if isinstance(event, AttemptEnded):
                attempt = event.attempt
            else:
                judgements.append(event.judgement)
                report(1)
        assert attempt is not None
        tags: tuple[str, ...] = ()
        if attempt.failure is not None and job.effort is not None:
            others = [j for j in judgements if j is not attempt.failure]
            diagnosis = diagnose(trial, attempt.failure, others, job.effort)
            tags = diagnosis.tags
            attempt = diagnosis.told(attempt)
        else:
            attempt = replace(attempt, explanation=without_diagnosis(attempt))
        baselines: dict[str, PeerVerdict] = {}
        if job.baseline_seed is not None:
            baselines = run_all(
                task,
                lambda draw: self._answer(trial, task, draw),
                job.baseline_seed,
                cache=self.draws,
            )
        perf = not_timed(attempt, self.runner.device) if job.timed else None
        if job.timed and perf is None and self.runner.keeps_compiled:
            # Here many compile side by side; whoever times has the device alone.
            _compile_ahead(trial, task)
        return Heard(attempt=attempt, tags=tags, baselines=baselines, perf=perf)

    def _answer(self, trial: Trial, task: Task, draw: Draw) -> Answer:
        """Run the candidate on a peer's draw."""
        observation, placed = trial.run(draw.case, draw.inputs, poison=draw.turn)
        mutated = [
            inspect(placed[name], observation.buffers.get(name, placed[name].buffer)).tensor
            for name in task.mutates
        ]
        return answer(observation, mutated)


def _compile_ahead(trial: Trial, task: Task) -> None:
    """Have what is to be timed in the candidate's cache."""
    if trial.candidate.language == "triton":
        calls = (rehearsed(task, case) for case in timed_cases(task))
        trial.rehearse(calls, budget_s=REHEARSAL_S)


class Timing:
    """The perf stage: right candidates timed, by a timekeeper that is made when it is needed.

    Args:
        court: that judges.
        baselines: whom candidates are timed against; None takes the usual ones.
    """

    def __init__(self, court: Court, *, baselines: tuple[str, ...] | None = None) -> None:
        self._court = court
        self._baselines = baselines
        self._keeper: Any = None

    def hear_and_time(self, job: Job, report: Callable[[int], None] = lambda count: None) -> Heard:
        """Judge one candidate, and time it if it is right."""
        heard = self._court.hear(job, report)
        if not job.timed or heard.perf is not None:
            return heard
        (timed,) = self.time(((job, heard),))
        return timed

    def time(self, batch: Sequence[tuple[Job, Heard]]) -> Iterator[Heard]:
        """Time candidates one after the other, while nobody else uses the device."""
        # Timing needs more of torch than judging does.
        from kerneltruth.commands.timing import keeper_for_runs

        device = self._court.runner.device
        if self._keeper is None:
            self._keeper = keeper_for_runs(self._court.runner, self._baselines)
        parts = [*_by_tasks(batch, max(1, min(PART, self._keeper.at_once // 2)))]
        # Compiling takes longest; others may judge meanwhile.
        with checking(device):
            self._keeper.ready(_tasks(parts[0]))
        following = [*(job.candidate for job, _ in batch[1:]), None]
        with timing(device):
            for part, coming in zip_longest(parts, parts[1:], fillvalue=()):
                self._keeper.ready_beside(_tasks(coming))
                for job, heard in part:
                    yield replace(heard, perf=self._timed(job, following.pop(0)))

    def _timed(self, job: Job, then: Candidate | None) -> dict[str, Any]:
        try:
            timed: dict[str, Any] = self._keeper.time(find(job.task), job.candidate, then=then)
        except (MemoryError, RuntimeError) as error:
            # What the judge itself needs the device for, such as grading.
            return {"outcome": "infra", "detail": f"{type(error).__name__}: {error}"[:300]}
        return timed


def _tasks(batch: Iterable[tuple[Job, Heard]]) -> list[Task]:
    return [find(name) for name in dict.fromkeys(job.task for job, _ in batch)]


def _by_tasks(
    batch: Sequence[tuple[Job, Heard]], most: int
) -> Iterator[Sequence[tuple[Job, Heard]]]:
    """The batch in parts of so many tasks at most."""
    begin = 0
    for end in range(1, len(batch) + 1):
        if end == len(batch) or len(_tasks(batch[begin : end + 1])) > most:
            yield batch[begin:end]
            begin = end


@dataclass(frozen=True, slots=True, kw_only=True)
class CourtFactory:
    """Makes a court where it is called: what travels to another machine in place of one."""

    device: str
    targets: tuple[str, ...]
    policy: Policy
    suite: str | None = None
    against: tuple[str, ...] = ()

    def __call__(self) -> Callable[[Job], Heard]:
        """A warm court's hearing."""
        court = Court(
            policy=self.policy, device=self.device, targets=self.targets, cache_root=cache_root()
        )
        court.start()
        if self.suite is not None and is_foreign(self.suite):
            on_cpu = self.device == "cpu"
            runner = court.runner if on_cpu else Runner(device="cpu")
            on_device = None if on_cpu else court.runner
            cores = len(os.sched_getaffinity(0))
            register_at(self.suite, runner, on_device=on_device, judges=cores)
        court.warm()
        return Timing(court, baselines=self.against or None).hear_and_time


def not_timed(attempt: Attempt, device: str) -> dict[str, Any] | None:
    """Why a judged candidate is not timed: its perf stage. None where it is to be timed."""
    if not isinstance(attempt.verdict, Passed):
        stage = "exe" if call_stage(attempt)["outcome"] == "pass" else "call"
        return {"outcome": NOT_RUN, "detail": f"{stage}: {word(attempt.verdict)}"}
    if device == "cpu":
        return {"outcome": NOT_RUN, "detail": "no GPU: `run` times on one only"}
    if attempt.own_weights is not None:
        return {"outcome": NOT_RUN, "detail": "a model with its own weights is not timed"}
    if attempt.candidate.language == "numpy":
        return {"outcome": NOT_RUN, "detail": "a NumPy kernel runs on the host"}
    return None


def without_diagnosis(attempt: Attempt) -> str:
    """What a verdict says by itself: of the load, or of the case that failed.

    Empty where there is nothing to say but the verdict.
    """
    failure = attempt.failure
    match attempt.verdict:
        case CompileError(detail=detail) | Crashed(detail=detail):
            return detail
        case TimedOut(seconds=seconds) if failure is None:
            return f"Did not load within {seconds:g} s."
        case TimedOut(seconds=seconds) if failure is not None:
            return f"A call did not return within {seconds:g} s: {failure.case.summary()}."
        case _:
            return ""


def lost(job: Job, reason: str) -> Heard:
    """What is left of a job whose judge was lost."""
    c = job.candidate
    ref = CandidateRef(sha256=c.sha256, path=c.path, language=c.language, entry=c.entry)
    verdict = Infra(reason=reason)
    attempt = Attempt(task=job.task, candidate=ref, verdict=verdict, cases=0, failed=0)
    return Heard(attempt=attempt)
