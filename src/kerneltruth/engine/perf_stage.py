"""The perf stage: right candidates timed one by one, alone on the device."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

import torch

from kerneltruth.clock.device.lock import checking, timing
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.engine.devices import cache_root
from kerneltruth.engine.evaluator import Evaluation, EvaluationRequest, Evaluator
from kerneltruth.oracle.bounds import Policy
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.foreign import is_foreign, register_at
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import Task

if TYPE_CHECKING:
    from kerneltruth.engine.benchmark.benchmarker import Benchmarker

# Baselines of this many tasks get ready side by side, while those of others are timed.
PART = 8


class PerfStage:
    """Times right candidates, with a benchmarker that is made when it is needed."""

    def __init__(self, evaluator: Evaluator, *, baselines: tuple[str, ...] | None = None) -> None:
        self._evaluator = evaluator
        self._baselines = baselines
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
        # Timing needs more of torch than judging does.
        from kerneltruth.engine.benchmark.runs import benchmarker_for_runs

        device = self._evaluator.runner.device
        if self._benchmarker is None:
            self._benchmarker = benchmarker_for_runs(self._evaluator.runner, self._baselines)
        parts = [*_by_tasks(batch, max(1, min(PART, self._benchmarker.capacity // 2)))]
        # Compiling takes longest; judges may use the device until it is done.
        with checking(device):
            self._benchmarker.ready(_tasks(parts[0]))
        following = [*(job.candidate for job, _ in batch[1:]), None]
        with timing(device):
            for part, coming in zip_longest(parts, parts[1:], fillvalue=()):
                self._benchmarker.prepare_in_background(_tasks(coming))
                for job, evaluation in part:
                    yield replace(evaluation, perf=self._timed(job, following.pop(0)))

    def _timed(self, job: EvaluationRequest, then: Candidate | None) -> CandidateTimes:
        assert self._benchmarker is not None
        try:
            return self._benchmarker.time(find(job.task), job.candidate, then=then)
        except (MemoryError, RuntimeError) as error:
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

    def __call__(self) -> Callable[[EvaluationRequest], Evaluation]:
        """`evaluate_and_time` of a warm evaluator, in a process that does nothing else."""
        torch.set_num_threads(1)
        evaluator = Evaluator(
            policy=self.policy, device=self.device, targets=self.targets, cache_root=cache_root()
        )
        evaluator.start()
        if self.suite is not None and is_foreign(self.suite):
            on_cpu = self.device == "cpu"
            runner = evaluator.runner if on_cpu else Runner(device="cpu")
            on_device = None if on_cpu else evaluator.runner
            cores = len(os.sched_getaffinity(0))
            register_at(self.suite, runner, on_device=on_device, judges=cores)
        evaluator.warm()
        return PerfStage(evaluator, baselines=self.against or None).evaluate_and_time
