"""Schedulers of a run's candidates: pools on this machine, one for each device, or Ray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.engine.evaluator import Evaluation, EvaluationRequest, Evaluator
from kerneltruth.engine.perf_stage import EvaluatorFactory, PerfStage
from kerneltruth.engine.requests import RunRequest
from kerneltruth.engine.scheduling.local_pool import LocalPool, LocalPools
from kerneltruth.engine.scheduling.ray_cluster import Placement, RayCluster
from kerneltruth.engine.scheduling.scheduler import JUDGES_PER_GPU, Scheduler, judges_at_once
from kerneltruth.engine.scheduling.second_stage import Then
from kerneltruth.oracle.bounds import Policy
from kerneltruth.suites.foreign import absolute


def scheduler_of(
    options: RunRequest, evaluators: Sequence[Evaluator]
) -> Scheduler[EvaluationRequest, Evaluation]:
    """Return the scheduler of a run, with an evaluator for each device of this machine."""
    if options.executor != "local":
        return _on_ray(options, evaluators[0].runner.device)
    for evaluator in evaluators:
        evaluator.warm()
    workers = max(1, judges_at_once(options.workers) // len(evaluators))
    return LocalPools(pools=[_pool(options, each, workers) for each in evaluators])


def _pool(
    options: RunRequest, evaluator: Evaluator, workers: int
) -> LocalPool[EvaluationRequest, Evaluation]:
    timed = Then(
        wanted=lambda job, evaluation: job.timed and evaluation.perf is None,
        work=PerfStage(evaluator, baselines=options.against or None).time,
        lost=_not_timed,
    )
    return LocalPool(work=evaluator.evaluate, workers=workers, then=timed)


def _not_timed(job: EvaluationRequest, evaluation: Evaluation, reason: str) -> Evaluation:
    """Replace the perf stage of a right candidate that the machine failed to time."""
    del job
    return replace(evaluation, perf=CandidateTimes(outcome="infra", detail=reason))


def _on_ray(options: RunRequest, device: str) -> RayCluster[EvaluationRequest, Evaluation]:
    return RayCluster(
        make=EvaluatorFactory(
            device=device,
            targets=options.targets,
            policy=Policy(),
            suite=absolute(options.suite),
            against=options.against,
        ),
        address=options.address,
        judges=options.workers,
        placement=Placement() if device == "cpu" else Placement(gpus=1 / JUDGES_PER_GPU),
    )
