"""Run `audit --suite`: every task of a suite proves itself, side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from msgspec.structs import asdict

from kerneltruth.documents.contracts import contract_name
from kerneltruth.documents.suites import FlaggedCase, ProofSummary, SuiteDocument
from kerneltruth.engine.proof import NO_TIME, Proof, by_category, counted, prove
from kerneltruth.engine.requests import AuditRequest, Step
from kerneltruth.engine.scheduling.local_pool import LocalPool
from kerneltruth.engine.scheduling.scheduler import Done, Lost, Progress, Scheduler, judges_at_once
from kerneltruth.errors import UserError
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import open_tasks, opened, under_rules
from kerneltruth.suites.pytorch import eager_of, own_function
from kerneltruth.tasks.registry import eager_modules, find, key_of, suites

# Wait this long for results after the budget is spent.
AFTER_BUDGET_S = 2.0
Prove: TypeAlias = Callable[..., Proof]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofJob:
    """One task to be proved."""

    task: str


def audit_suite(
    options: AuditRequest, runner: Runner, start: float, *, prove: Prove = prove
) -> Generator[Step, None, SuiteDocument]:
    """Prove the tasks with a runner that is warming up; `start` is when the command began.

    `prove` judges the function of one task, as `proof.prove` does.

    Raises:
        UserError: `--only` names a task that the suite does not have, or there is no such suite.
    """
    with opened(options.suite, runner, judges=judges_at_once(options.workers)) as suite:
        return (yield from _audit_suite(replace(options, suite=suite), runner, start, prove))


def _audit_suite(
    options: AuditRequest, runner: Runner, start: float, prove: Prove
) -> Generator[Step, None, SuiteDocument]:
    jobs = _jobs(options)
    proofs: list[Proof] = []
    begun: dict[str, Proof] = {}
    # The last tasks of a user's suite are usually the largest: start them early, not alone at the
    # end.
    in_turn = jobs if open_tasks(options.suite) is None else jobs[::-1]
    for event in _scheduler(options, runner, start, prove).run(in_turn):
        match event:
            case Progress(job=job, news=proof):
                begun[job.task] = proof
                continue
            case Done(result=None):
                continue
            case Done(result=proof):
                assert proof is not None
                proofs.append(proof)
            case Lost(job=job, reason=reason):
                proofs.append(_failed(job, reason))
        begun[proofs[-1].task] = proofs[-1]
        yield _step(proofs, begun, total=len(jobs))
    for task in begun.keys() - {proof.task for proof in proofs}:
        begun[task].skipped[NO_TIME] += 1
        proofs.append(begun[task])
    order = [job.task for job in jobs]
    proofs.sort(key=lambda proof: order.index(proof.task))
    not_judged = [*{*order} - {proof.task for proof in proofs}]
    return _document(options, runner.device, proofs, not_judged, seconds=time.monotonic() - start)


def _scheduler(
    options: AuditRequest, runner: Runner, start: float, prove: Prove
) -> Scheduler[ProofJob, Proof | None]:
    """Return what proves tasks, each in a judge, until the budget is spent."""
    cache = ExpectationCache(Policy())
    until = math.inf if options.budget_s is None else start + options.budget_s

    def proven(job: ProofJob, report: Callable[[Proof], None]) -> Proof | None:
        if time.monotonic() > until:
            return None
        own = partial(prove, runner=runner, cache=cache, until=until, tell=report)
        proof = _proof(job, options, own)
        # Deriving a problem's task may take seconds.
        return None if proof.skipped[NO_TIME] and not proof.cases else proof

    runner.versions()
    # Give up a case that takes longer than this.
    late = until + AFTER_BUDGET_S
    return LocalPool(work=proven, workers=judges_at_once(options.workers), until=late)


def _step(proofs: Sequence[Proof], begun: Mapping[str, Proof], *, total: int) -> Step:
    last = proofs[-1]
    cases = sum(sum(proof.cases.values()) for proof in begun.values())
    text = f"{last.task}: {'holds' if last.holds else 'DOES NOT HOLD'} ({cases} cases)"
    return Step(done=len(proofs), total=total, text=text, notable=not last.holds)


def _jobs(options: AuditRequest) -> list[ProofJob]:
    assert options.suite is not None
    if options.contract is not None:
        contract_name(options.contract)
    every = open_tasks(options.suite) or eager_modules(options.suite)
    if not every:
        raise UserError(
            f"--suite {options.suite}: it has no functions of plain PyTorch to judge; "
            f"must be one of {', '.join(suites())}"
        )
    keys = [key_of(name, options.suite) for name in options.only] or list(every)
    return [ProofJob(task=key) for key in dict.fromkeys(keys)]


def _proof(job: ProofJob, options: AuditRequest, prove: Prove) -> Proof:
    task = find(job.task)
    try:
        candidate = eager_of(task) or own_function(task)
        assert candidate is not None
        plan = Plan(seed=options.seed, cases=options.cases, promises=options.promises)
        if options.contract is not None:
            plan = replace(plan, contract=contract_name(options.contract))
            # A function of PyTorch has no kernel of its own.
            plan = replace(under_rules(plan, task.key), require_kernel=False)
        return prove(task, candidate, plan=plan, only_decisive=options.contract is not None)
    except UserError:
        raise
    except Exception as error:
        # A reference or contract that raises is a mistake in one task; the others go on.
        return _failed(job, f"{type(error).__name__}: {error}")


def _failed(job: ProofJob, reason: str) -> Proof:
    flag = FlaggedCase(case="", verdict="error", detail=reason)
    return Proof(task=job.task, category=find(job.task).category, flagged=[flag])


def _document(
    options: AuditRequest,
    device: str,
    proofs: list[Proof],
    not_judged: list[str],
    *,
    seconds: float,
) -> SuiteDocument:
    assert options.suite is not None
    total = counted(proofs)
    return SuiteDocument(
        suite=options.suite,
        device=device,
        seed=options.seed,
        tasks=tuple(proof.document() for proof in proofs),
        categories=by_category(proofs),
        summary=ProofSummary(**asdict(total), good=total.hold == total.tasks > 0),
        # The budget ran out before they began, or before their first cases ended.
        not_judged=tuple(sorted(not_judged)),
        seconds=seconds,
    )
