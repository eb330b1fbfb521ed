"""Judge the answers of `refine` and `geak` between rounds, on cases of their own.

The cases come from a seed derived for this purpose, so that the model never sees the cases by which
`run` judges the final candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kerneltruth.cases.philox import derive
from kerneltruth.documents.lines import Labels
from kerneltruth.engine.candidates import CandidateScheduler, PerfStage, evaluations, local_pools
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.engine.requests import CASES
from kerneltruth.errors import InternalError, UserError
from kerneltruth.explain.diagnosis import DiagnosisEffort
from kerneltruth.generate.judged import review_of
from kerneltruth.generate.requests import GenerateRequest
from kerneltruth.generate.review import Review
from kerneltruth.generate.transcript import Exchange
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.contract import contract_named
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import under_rules
from kerneltruth.suites.entries import Entry, candidate_of, match_tasks
from kerneltruth.suites.replies import code_of
from kerneltruth.suites.submission import Submission
from kerneltruth.tasks.registry import Listed, find

EFFORT = DiagnosisEffort(evaluations=60, seconds=2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """An answer with its review; None if the machine spoilt it."""

    exchange: Exchange
    review: Review | None


class Reviewer:
    """Judges answers in this machine's judge processes."""

    def __init__(
        self,
        options: GenerateRequest,
        runner: Runner,
        tasks: dict[str, Listed],
        suite: str,
        *,
        pools: Callable[..., CandidateScheduler] = local_pools,
    ) -> None:
        """Prepare to judge.

        Tasks go by bare name; `pools` makes the scheduler of one round of answers.
        """
        self._pools = pools
        self._runner = runner
        self._evaluator = Evaluator(policy=Policy(), runner=runner)
        self._tasks = tasks
        self._suite = suite
        self._workers = options.workers
        self._kernels = options.kernels
        self._plan = Plan(
            seed=derive(options.seed, "feedback"),
            cases=options.cases or CASES,
            contract=contract_named(options.contract).name,
            require_kernel=options.require_kernel,
            whole=True,
            promises=options.cases is None,
            deadline_s=options.deadline_s,
        )

    def review(self, exchanges: Sequence[Exchange]) -> Generator[Reviewed, None, None]:
        """Judge answers; the same source for the same task is judged once."""
        waiting: dict[str, list[Exchange]] = {}
        jobs: dict[str, EvaluationRequest] = {}
        for exchange in exchanges:
            entry = self._entry(exchange)
            name = f"{entry.task.key}@{entry.sha256}"
            waiting.setdefault(name, []).append(exchange)
            if name in jobs or len(waiting[name]) > 1:
                continue
            try:
                jobs[name] = self._job(name, entry)
            except UserError as error:
                for each in waiting.pop(name):
                    refused = Review(outcome="compile_error", stage="call", detail=str(error))
                    yield Reviewed(exchange=each, review=refused)
        if not jobs:
            return
        # A candidate that could not be timed is still right.
        pools = self._pools(
            (self._evaluator,),
            workers=self._workers,
            # The other verdicts give no review.
            baselines=("eager",),
            untimed=lambda job, evaluation, reason: evaluation,
            stage=partial(PerfStage, kernels=self._kernels),
        )
        for job, evaluation in evaluations(pools, jobs.values()):
            review = review_of(find(job.task), evaluation)
            for number, each in enumerate(waiting[job.name]):
                spoilt = review.outcome == "infra"
                said = replace(review, seconds=0.0) if number else review
                yield Reviewed(exchange=each, review=None if spoilt else said)

    def _entry(self, exchange: Exchange) -> Entry:
        name = exchange.task.removeprefix(f"{self._suite}/")
        submission = Submission(
            origin=exchange.task, name=name, source=code_of(exchange.reply.text)
        )
        # Only this task, although the answer's function may have another task's name.
        for entry in match_tasks([submission], {name: self._tasks[name]}, Labels()):
            if isinstance(entry, Entry):
                return entry
        raise InternalError(f"{exchange.task} is no task of {self._suite}")

    def _job(self, name: str, entry: Entry) -> EvaluationRequest:
        """Return a job for the evaluator.

        Raises:
            UserError: the source is not a candidate.
        """
        return EvaluationRequest(
            name=name,
            task=entry.task.key,
            candidate=candidate_of(entry),
            plan=under_rules(self._plan, entry.task.key),
            effort=EFFORT,
            timed=self._runner.device != "cpu",
        )
