"""Many kernels of the corpus judged in parallel, with a count for every case."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kerneltruth.corpus import ENTRIES, Entry, source
from kerneltruth.documents.model import plain
from kerneltruth.documents.verdict import Declined, Passed, is_bad
from kerneltruth.engine.devices import cache_root
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.engine.scheduling.local_pool import LocalPool
from kerneltruth.engine.scheduling.scheduler import Done, Lost, Scheduler
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import Candidate, read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.core import TASKS
from kerneltruth.tasks.registry import find

# The dearest to judge, handed out first so that none is left for the end.
DEAR = ("attention", "causal_attention", "matmul", "addmm", "gram", "scaled_dot_product_attention")


@dataclass(frozen=True, slots=True)
class Kind:
    """What the tables sort cases by."""

    strategy: str
    dtype: str
    layout: str
    verdict: str


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """What came of one kernel's cases: every one is counted under exactly one kind or reason."""

    verdict: str = "lost"
    kinds: Counter[Kind] = field(default_factory=Counter)
    declined: Counter[str] = field(default_factory=Counter)
    unrefereeable: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    flagged: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def judged(self) -> int:
        """Cases that ended in pass or in something that speaks against the kernel."""
        return sum(n for kind, n in self.kinds.items() if kind.verdict in ("pass", "flagged"))


def candidate_of(entry: Entry) -> Candidate:
    """The kernel as the judge takes it."""
    filename = f"{entry.name}.py"
    return read_candidate(source(entry), filename, task_names=tuple(TASKS), task=entry.task)


def chosen(role: str, only: Sequence[str]) -> list[Entry]:
    """The corpus entries of a role ("" for both), or those of them whose names are given."""
    found = [e for e in ENTRIES if e.role == role or not role]
    return [e for e in found if not only or e.name in only]


def job_of(entry: Entry, plan: Plan) -> EvaluationRequest:
    """The hearing of a kernel without explanation and without the peers' checks."""
    return EvaluationRequest(
        name=entry.name, task=entry.task, candidate=candidate_of(entry), plan=plan
    )


def evaluate_all(
    jobs: Sequence[EvaluationRequest],
    *,
    device: str,
    workers: int | None = None,
    runner: Runner | None = None,
) -> Iterator[tuple[EvaluationRequest, Evaluation]]:
    """Judge every job, with a runner that is warming up or one of its own; yields as they end."""
    torch.set_num_threads(1)
    evaluator = Evaluator(
        device=device, targets=(), policy=Policy(), cache_root=cache_root(), runner=runner
    )
    try:
        evaluator.start()
        evaluator.warm()
        ordered = sorted(jobs, key=lambda job: job.task not in DEAR)
        judges = workers or len(os.sched_getaffinity(0))
        pool: Scheduler[EvaluationRequest, Evaluation] = LocalPool(
            work=lambda job, report: evaluate(evaluator, job, report), workers=judges
        )
        for event in pool.run(ordered):
            if isinstance(event, Done):
                yield event.job, event.result
            elif isinstance(event, Lost):
                yield event.job, Evaluation(skipped=Counter({event.reason: 1}))
    finally:
        evaluator.close()


def evaluate(
    evaluator: Evaluator, job: EvaluationRequest, report: Callable[[int], None]
) -> Evaluation:
    """Judge one job, counting its cases."""
    evaluation = Evaluation()
    start = time.monotonic()
    with CandidateSession(
        find(job.task),
        job.candidate,
        evaluator.runner,
        evaluator.cache,
        deadline_s=job.plan.deadline_s,
    ) as session:
        for event in judge_cases(session, job.plan):
            if isinstance(event, AttemptEnded):
                evaluation.verdict = event.attempt.verdict.word
                evaluation.unrefereeable.update(event.attempt.unrefereeable)
                evaluation.skipped.update(event.attempt.skipped)
                break
            _count(evaluation, event.judgement.case, event.judgement.verdict, event.judgement.stats)
            report(1)
    evaluation.seconds = time.monotonic() - start
    return evaluation


def _count(evaluation: Evaluation, case: Any, verdict: Any, stats: Any) -> None:
    said = "flagged" if is_bad(verdict) else verdict.word
    evaluation.kinds[Kind(case.strategy, case.dtype, case.layout, said)] += 1
    if isinstance(verdict, Declined):
        evaluation.declined[verdict.reason.splitlines()[0]] += 1
    elif is_bad(verdict) and not isinstance(verdict, Passed):
        evaluation.flagged.append(
            {
                "case": case.summary(),
                "strategy": case.strategy,
                "seed": case.seed,
                "verdict": verdict.word,
                "says": plain(verdict),
                "max_bound_ratio": plain(stats.max_bound_ratio) if stats else None,
            }
        )
