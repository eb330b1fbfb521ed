"""One file judged: from options to the document of `check --json`."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace

from msgspec import structs

from kerneltruth.cases.published import published_dtype
from kerneltruth.cases.strategies import dtypes_of, generate
from kerneltruth.documents.case import Domain
from kerneltruth.documents.checks import CheckDocument
from kerneltruth.documents.lines import attempt_in, read_line
from kerneltruth.documents.model import content_hash, plain
from kerneltruth.documents.records import Attempt, Judgement
from kerneltruth.documents.verdict import Unrefereeable
from kerneltruth.engine.check_document import check_document
from kerneltruth.engine.evaluator import (
    EvaluationRequest,
    Evaluator,
    store_attempt,
    without_diagnosis,
)
from kerneltruth.engine.policy import bounded_dtypes, choose_policy
from kerneltruth.engine.requests import CASES_OF_FILE, SHORT_DTYPES, CheckRequest, Step
from kerneltruth.engine.run_directory import environment, open_run
from kerneltruth.errors import UserError
from kerneltruth.explain.diagnosis import DiagnosisEffort, diagnose
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.contract import contract_named
from kerneltruth.oracle.dealing import planned_cases
from kerneltruth.oracle.evaluate import AttemptEnded, evaluate_cases
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.host import Runner
from kerneltruth.suites.foreign import opened
from kerneltruth.suites.recognize import recognize
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import Task

EFFORT = DiagnosisEffort(evaluations=200, seconds=20.0)


def judge_file(
    options: CheckRequest, runner: Runner, start: float
) -> Generator[Step, None, CheckDocument]:
    """Judge the file with a runner that is warming up; `start` is when the command began."""
    with opened(options.suite, runner) as suite:
        return (yield from _judge_file(replace(options, suite=suite), runner, start))


def _judge_file(
    options: CheckRequest, runner: Runner, start: float
) -> Generator[Step, None, CheckDocument]:
    policy = choose_policy(options.bounds, tf32=options.tf32)
    job = job_of(options, policy)
    identity = content_hash(
        [job.candidate.sha256, plain(job.plan), plain(policy), runner.device, runner.targets]
    )
    evaluator = Evaluator(policy=policy, runner=runner)
    with open_run(
        options.out,
        command="check",
        identity=identity,
        device=runner.device,
        seed=options.seed,
        keep=read_line,
    ) as store:
        done = [line for line in store.results() if line.key == job.name]
        if done:
            kept, finding = attempt_in(done[0]), done[0].finding or None
            return check_document(
                options, kept, finding=finding, run=store.path, seconds=kept.seconds
            )
        attempt = yield from _judge(evaluator, job)
        kept, finding = store_attempt(
            store, job, attempt, environment(runner.device), policy=policy
        )
        store.finish()
        seconds = time.monotonic() - start
        return check_document(options, kept, finding=finding, run=store.path, seconds=seconds)


def job_of(options: CheckRequest, policy: Policy) -> EvaluationRequest:
    """Return the job that a request means.

    Raises:
        CandidateError: the source is no candidate for the task.
        UserError: an option is wrong.
    """
    candidate, task = recognize(
        options.file, options.task, options.suite, source=options.source, entry=options.entry
    )
    contract = contract_named(options.contract)
    domain: Domain = "core" if options.domain == "core" else "extended"
    if domain == "core" and contract.name == "torch":
        raise UserError(
            "--domain core: it leaves out what --contract torch decides by; leave out one of them"
        )
    plan = Plan(
        seed=options.seed,
        strategies=options.strategies,
        cases=options.cases or CASES_OF_FILE,
        whole=True,
        promises=options.cases is None,
        dtypes=_dtypes(options.dtypes, task, domain) or bounded_dtypes(task, policy),
        domain=domain,
        contract=contract.name,
        deadline_s=options.deadline_s,
        require_kernel=options.require_kernel,
    )
    # Says what is wrong with the strategies before anything is begun.
    generate(
        task,
        strategies=plan.strategies,
        seed=plan.seed,
        count=0,
        dtypes=plan.dtypes,
        domain=plan.domain,
    )
    _check_published_is_asked(plan, task)
    # By its name alone: the same file lies elsewhere on another machine.
    return EvaluationRequest(name=options.file.name, task=task.key, candidate=candidate, plan=plan)


def _check_published_is_asked(plan: Plan, task: Task) -> None:
    """Refuse options that leave nothing to decide by, which anything would pass."""
    dtype = published_dtype(task)
    if plan.contract != "published" or plan.tries_published(dtype):
        return
    left_out = "--strategy" if plan.strategies and "default" not in plan.strategies else "--dtype"
    raise UserError(
        f"{left_out}: it leaves out the published inputs of {task.name} (strategy default, "
        f"{dtype}), which alone decide under --contract published; add them or leave out one option"
    )


def _dtypes(names: tuple[str, ...], task: Task, domain: Domain) -> tuple[str, ...]:
    known = dtypes_of(task, domain)
    for name in names:
        if SHORT_DTYPES.get(name, name) not in known:
            raise UserError(
                f"--dtype {name!r}: {task.name} has, in its {domain} domain, {', '.join(known)}"
            )
    return tuple(dict.fromkeys(SHORT_DTYPES.get(name, name) for name in names))


def _judge(evaluator: Evaluator, job: EvaluationRequest) -> Generator[Step, None, Attempt]:
    judgements: list[Judgement] = []
    task = find(job.task)
    total = planned_cases(task, job.plan, evaluator.runner.device)
    with CandidateSession(
        task,
        job.candidate,
        evaluator.runner,
        evaluator.cache,
        deadline_s=job.plan.deadline_s,
        controls=evaluator.controls,
    ) as session:
        for event in evaluate_cases(session, job.plan):
            if isinstance(event, AttemptEnded):
                attempt = event.attempt
                break
            judgements.append(event.judgement)
            said = f"{event.judgement.verdict.word}: {event.judgement.case.summary()}"
            yield Step(done=min(len(judgements), total), total=total, text=said)
        if attempt.failure is not None:
            yield Step(done=total, total=total, text="looking for the smallest failing case")
            others = [j for j in judgements if j is not attempt.failure]
            found = diagnose(session, attempt.failure, others, EFFORT)
            return found.added_to(attempt)
    require_cases(attempt, task)
    return structs.replace(attempt, explanation=without_diagnosis(attempt))


def require_cases(attempt: Attempt, task: Task) -> None:
    """Refuse options that leave no case.

    Raises:
        UserError: no case was made.
    """
    replaced = attempt.unrefereeable or attempt.void
    nothing = not (replaced or attempt.cases or attempt.declined or attempt.skipped)
    if nothing and isinstance(attempt.verdict, Unrefereeable):
        raise UserError(
            f"no case of {task.name} fits these --strategy, --dtype and --domain; ask for less"
        )
