"""Many candidates: judged side by side, and right ones timed one by one, alone on the device."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

import torch
from msgspec import structs

from kerneltruth.clock.device.lock import device_for_checks, device_for_timing
from kerneltruth.clock.protocol.effort import RUN_EFFORT
from kerneltruth.documents.timing import CandidateTimes, DeviceShare
from kerneltruth.engine.devices import cache_root
from kerneltruth.engine.evaluator import Evaluation, EvaluationRequest, Evaluator, lost
from kerneltruth.engine.requests import RunRequest
from kerneltruth.engine.scheduling.local_pool import LocalPool, LocalPools, Then
from kerneltruth.engine.scheduling.ray_cluster import Placement, RayCluster
from kerneltruth.engine.scheduling.scheduler import (
    JUDGES_PER_GPU,
    Done,
    Lost,
    Scheduler,
    judges_at_once,
)
from kerneltruth.errors import ReferenceLost
from kerneltruth.oracle.bounds import Policy
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import absolute, is_at_hand, open_suite
from kerneltruth.suites.suite import Opening
from kerneltruth.tasks.registry import find, stay_open
from kerneltruth.tasks.spec import Task

if TYPE_CHECKING:
    from kerneltruth.engine.benchmark.benchmarker import Benchmarker

# Baselines of this many tasks get ready side by side, while those of others are timed.
PART = 8
Baselines: TypeAlias = tuple[str, ...] | None
CandidateScheduler: TypeAlias = Scheduler[EvaluationRequest, Evaluation]


def scheduler_of(
    options: RunRequest,
    evaluators: Sequence[Evaluator],
    *,
    stage: Callable[..., PerfStage] | None = None,
) -> CandidateScheduler:
    """Return the scheduler of a run, with an evaluator for each device of this machine."""
    if options.executor == "local":
        return local_pools(
            evaluators,
            workers=options.workers,
            baselines=options.against or None,
            stage=partial(stage or PerfStage, kernels=options.kernels),
        )
    on_cpu = evaluators[0].runner.device == "cpu"
    return RayCluster(
        make=EvaluatorFactory(
            device=evaluators[0].runner.device,
            targets=options.targets,
            policy=Policy(),
            suite=absolute(options.suite),
            against=options.against,
            kernels=options.kernels,
        ),
        address=options.address,
        judges=options.workers,
        placement=Placement() if on_cpu else Placement(gpus=1 / JUDGES_PER_GPU),
    )


def _infra(_: EvaluationRequest, evaluation: Evaluation, reason: str) -> Evaluation:
    """Replace the perf stage of a right candidate that the machine failed to time."""
    return replace(evaluation, perf=CandidateTimes(outcome="infra", detail=reason))


def local_pools(
    evaluators: Sequence[Evaluator],
    *,
    workers: int | None,
    baselines: Baselines = None,
    untimed: Callable[[EvaluationRequest, Evaluation, str], Evaluation] = _infra,
    stage: Callable[..., PerfStage] | None = None,
) -> CandidateScheduler:
    """Return pools on this machine, one for each evaluator's device.

    Args:
        evaluators: warm before judges are forked.
        workers: the most judges at once, in all; None means one per core.
        baselines: of right candidates; None means the usual ones.
        untimed: the evaluation of a right candidate whose timing process died twice.
        stage: makes the perf stage of an evaluator.
    """
    for evaluator in evaluators:
        evaluator.warm()
    return LocalPools(
        pools=[
            LocalPool(
                work=evaluator.evaluate,
                workers=max(1, judges_at_once(workers) // len(evaluators)),
                then=Then(
                    wanted=lambda job, evaluation: job.timed and evaluation.perf is None,
                    work=(stage or PerfStage)(evaluator, baselines=baselines).time,
                    lost=untimed,
                ),
            )
            for evaluator in evaluators
        ]
    )


def evaluations(
    scheduler: CandidateScheduler, jobs: Iterable[EvaluationRequest]
) -> Iterator[tuple[EvaluationRequest, Evaluation]]:
    """Evaluate every candidate once; a job whose judges were lost has that as its verdict."""
    for event in scheduler.run(jobs):
        match event:
            case Done(job=job, result=evaluation):
                yield job, evaluation
            case Lost(job=job, reason=reason):
                yield job, lost(job, reason)


def _benchmarker(runner: Runner, baselines: Baselines) -> Benchmarker:
    # Timing needs more of torch than judging does.
    from kerneltruth.engine.benchmark.baselines import baseline_sources
    from kerneltruth.engine.benchmark.benchmarker import DEFAULT_BASELINES, Benchmarker
    from kerneltruth.engine.benchmark.machine import known_machine

    return Benchmarker(
        runner,
        # Processes that check kernels are children of the same parent.
        machine=known_machine(runner, root=os.getppid()),
        seed=secrets.randbits(64),
        baselines=baselines or DEFAULT_BASELINES,
        effort=RUN_EFFORT,
        sources=baseline_sources,
    )


def _share(runner: Runner, candidate: Candidate, task: Task) -> DeviceShare:
    from kerneltruth.clock.schedule.timed_cases import timed_cases
    from kerneltruth.engine.benchmark.profiling import device_share

    return device_share(runner, candidate, task, timed_cases(task)[-1])


class PerfStage:
    """Times right candidates, with a benchmarker that is made when it is needed.

    With `kernels`, `share` says afterwards whose kernels take the device's time of each. A profiler
    takes seconds to start in a process, so nobody looks unless asked.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        baselines: Baselines = None,
        kernels: bool = False,
        make: Callable[[Runner, Baselines], Benchmarker] = _benchmarker,
        share: Callable[[Runner, Candidate, Task], DeviceShare] = _share,
    ) -> None:
        self._evaluator = evaluator
        self._share = share if kernels else None
        self._baselines = baselines
        self._make = make
        self._benchmarker: Benchmarker | None = None

    def evaluate_and_time(
        self, job: EvaluationRequest, report: Callable[[int], None] = lambda count: None
    ) -> Evaluation:
        """Judge one candidate, and time it if it is right."""
        evaluation = self._evaluator.evaluate(job, report)
        if not job.timed or evaluation.perf is not None:
            return evaluation
        (timed,) = self.time(((job, evaluation),))
        return timed

    def time(self, batch: Sequence[tuple[EvaluationRequest, Evaluation]]) -> Iterator[Evaluation]:
        """Time candidates one after the other, while nothing else uses the device."""
        device = self._evaluator.runner.device
        self._evaluator.open_suite()
        if self._benchmarker is None:
            self._benchmarker = self._make(self._evaluator.runner, self._baselines)
        parts = [*_by_tasks(batch, max(1, min(PART, self._benchmarker.capacity // 2)))]
        # Compiling takes longest; judges may use the device until it is done.
        with device_for_checks(device):
            self._benchmarker.ready(_tasks(parts[0]))
        following = [*(job.candidate for job, _ in batch[1:]), None]
        with device_for_timing(device):
            for part, coming in zip_longest(parts, parts[1:], fillvalue=()):
                self._benchmarker.prepare_in_background(_tasks(coming))
                for job, evaluation in part:
                    yield replace(evaluation, perf=self._timed(job, following.pop(0)))

    def _timed(self, job: EvaluationRequest, then: Candidate | None) -> CandidateTimes:
        assert self._benchmarker is not None
        task = find(job.task)
        try:
            timed = self._benchmarker.time(task, job.candidate, then=then)
            if self._share is None or timed.outcome != "timed":
                return timed
            found = self._share(self._evaluator.runner, job.candidate, task)
            return structs.replace(timed, kernel=found)
        except (MemoryError, RuntimeError, ReferenceLost) as error:
            # The judge itself needs the device too, for example to grade.
            said = f"{type(error).__name__}: {error}"[:300]
            return CandidateTimes(outcome="infra", detail=said)


def _tasks(batch: Iterable[tuple[EvaluationRequest, Evaluation]]) -> list[Task]:
    return [find(name) for name in dict.fromkeys(job.task for job, _ in batch)]


def _by_tasks(
    batch: Sequence[tuple[EvaluationRequest, Evaluation]], most: int
) -> Iterator[Sequence[tuple[EvaluationRequest, Evaluation]]]:
    """Split the batch into parts with at most `most` tasks."""
    begin = 0
    for end in range(1, len(batch) + 1):
        if end == len(batch) or len(_tasks(batch[begin : end + 1])) > most:
            yield batch[begin:end]
            begin = end


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorFactory:
    """Makes an evaluator where it is called; it travels to other machines in place of one."""

    device: str
    targets: tuple[str, ...]
    policy: Policy
    suite: str | None = None
    against: tuple[str, ...] = ()
    kernels: bool = False
    evaluator: Callable[..., Evaluator] = Evaluator
    stage: Callable[..., PerfStage] = PerfStage

    def __call__(self) -> Callable[[EvaluationRequest], Evaluation]:
        """`evaluate_and_time` of a warm evaluator, in a process that does nothing else."""
        torch.set_num_threads(1)
        evaluator = self.evaluator(
            policy=self.policy, device=self.device, targets=self.targets, cache_root=cache_root()
        )
        evaluator.start()
        if self.suite is not None and not is_at_hand(self.suite):
            on_cpu = self.device == "cpu"
            runner = evaluator.runner if on_cpu else Runner(device="cpu")
            on_device = None if on_cpu else evaluator.runner
            cores = len(os.sched_getaffinity(0))
            found = open_suite(
                Opening(option=self.suite, runner=runner, on_device=on_device, judges=cores)
            )
            stay_open(found.name, found)
        evaluator.warm()
        stage = self.stage(evaluator, baselines=self.against or None, kernels=self.kernels)
        # Another thread of this process may call it.
        here = copy_context()
        return lambda job: here.run(stage.evaluate_and_time, job)
