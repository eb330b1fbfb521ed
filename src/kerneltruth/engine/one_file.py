"""One file judged: from options to the document of `check --json`."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace
from typing import Any

from kerneltruth.cases.case import Domain
from kerneltruth.cases.strategies import dtypes_of, generate
from kerneltruth.codec import content_hash, plain
from kerneltruth.engine.evaluator import Court, Job, without_diagnosis
from kerneltruth.engine.events import Step
from kerneltruth.engine.policy import bounded_dtypes, choose_policy
from kerneltruth.engine.requests import CASES_OF_FILE, SHORT_DTYPES, CheckRequest
from kerneltruth.engine.run_directory import environment, open_run
from kerneltruth.engine.store import store_attempt
from kerneltruth.errors import UserError
from kerneltruth.explain.diagnosis import Effort, diagnose
from kerneltruth.oracle.attempt import Attempt, AttemptEnded, Judgement
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.course import Plan, try_candidate
from kerneltruth.oracle.trial import Trial
from kerneltruth.oracle.verdict import Unrefereeable, word
from kerneltruth.runner.host import Runner
from kerneltruth.runs.records import attempt_from_json
from kerneltruth.runs.store import RunStore
from kerneltruth.suites.foreign import opened
from kerneltruth.suites.recognize import recognize
from kerneltruth.tasks.registry import elsewhere, find
from kerneltruth.tasks.spec import Task

EFFORT = Effort(evaluations=200, seconds=20.0)


def judge_file(
    options: CheckRequest, runner: Runner, start: float
) -> Generator[Step, None, dict[str, Any]]:
    """Judge the file with a runner that is warming up; `start` is when the command began."""
    with opened(options.suite, runner) as suite:
        return (yield from _judge_file(replace(options, suite=suite), runner, start))


def _judge_file(
    options: CheckRequest, runner: Runner, start: float
) -> Generator[Step, None, dict[str, Any]]:
    policy = choose_policy(options.bounds, tf32=options.tf32)
    job = _job(options, policy)
    identity = content_hash(
        [job.candidate.sha256, plain(job.plan), plain(policy), runner.device, runner.targets]
    )
    court = Court(policy=policy, runner=runner)
    with open_run(
        options.out, command="check", identity=identity, device=runner.device, seed=options.seed
    ) as store:
        done = [line for line in store.results() if line["key"] == job.name]
        if done:
            attempt = attempt_from_json(done[0]["attempt"])
            return _document(options, attempt, store, done[0]["finding"], seconds=attempt.seconds)
        attempt = yield from _judge(court, job)
        finding = store_attempt(store, job, attempt, environment(runner.device), policy=policy)
        store.finish()
        return _document(options, attempt, store, finding, seconds=time.monotonic() - start)


def _job(options: CheckRequest, policy: Policy) -> Job:
    candidate, task = recognize(options.file, options.task, options.suite)
    domain: Domain = "core" if options.domain == "core" else "extended"
    plan = Plan(
        seed=options.seed,
        strategies=options.strategies,
        cases=options.cases or CASES_OF_FILE,
        promises=options.cases is None,
        dtypes=_dtypes(options.dtypes, task, domain) or bounded_dtypes(task, policy),
        domain=domain,
        deadline_s=options.deadline_s,
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
    # By its name alone: the same file lies elsewhere on another machine.
    return Job(name=options.file.name, task=task.key, candidate=candidate, plan=plan)


def _dtypes(names: tuple[str, ...], task: Task, domain: Domain) -> tuple[str, ...]:
    known = dtypes_of(task, domain)
    for name in names:
        if SHORT_DTYPES.get(name, name) not in known:
            raise UserError(
                f"--dtype {name!r}: {task.name} has, in its {domain} domain, {', '.join(known)}"
            )
    return tuple(dict.fromkeys(SHORT_DTYPES.get(name, name) for name in names))


def _judge(court: Court, job: Job) -> Generator[Step, None, Attempt]:
    judgements: list[Judgement] = []
    task = find(job.task)
    total = job.plan.total(task, court.runner.device)
    with Trial(
        task,
        job.candidate,
        court.runner,
        court.cache,
        deadline_s=job.plan.deadline_s,
        controls=court.controls,
    ) as trial:
        for event in try_candidate(trial, job.plan):
            if isinstance(event, AttemptEnded):
                attempt = event.attempt
                break
            judgements.append(event.judgement)
            said = f"{word(event.judgement.verdict)}: {event.judgement.case.summary()}"
            yield Step(done=min(len(judgements), total), total=total, text=said)
        if attempt.failure is not None:
            yield Step(done=total, total=total, text="looking for the smallest failing case")
            others = [j for j in judgements if j is not attempt.failure]
            found = diagnose(trial, attempt.failure, others, EFFORT)
            return found.told(attempt)
    if not (judgements or attempt.skipped) and isinstance(attempt.verdict, Unrefereeable):
        raise UserError(
            f"no case of {task.name} fits these --strategy, --dtype and --domain; ask for less"
        )
    return replace(attempt, explanation=without_diagnosis(attempt))


def _document(
    options: CheckRequest,
    attempt: Attempt,
    store: RunStore,
    finding: str | None,
    *,
    seconds: float,
) -> dict[str, Any]:
    verdict = attempt.verdict
    failure = attempt.failure
    chosen = options.task is not None or options.suite is not None
    return {
        "schema": 1,
        "task": attempt.task,
        "also_in": [] if chosen else list(elsewhere(find(attempt.task))),
        "candidate": plain(attempt.candidate),
        "torch_only": attempt.torch_only,
        "verdict": word(verdict),
        "declined": [{"case": case.summary(), "reason": why} for case, why in attempt.declined],
        "kind": getattr(verdict, "kind", None),
        "output": getattr(verdict, "output", None),
        "causes": plain(getattr(verdict, "causes", ())),
        "inputs": list(getattr(verdict, "inputs", ())),
        "detail": _detail(attempt),
        "explanation": attempt.explanation,
        "cases": attempt.cases,
        "failed": attempt.failed,
        "unrefereeable": dict(attempt.unrefereeable),
        "void": dict(attempt.void),
        "skipped": dict(attempt.skipped),
        "own_weights": attempt.own_weights,
        "interface": [
            {**plain(note), "first_summary": note.first.summary()} for note in attempt.interface
        ],
        "finding": str(store.path / "findings" / finding) if finding else None,
        "failing": None if failure is None else plain(failure.case),
        "failing_summary": None if failure is None else failure.case.summary(),
        "domain": None if failure is None else failure.case.domain,
        "minimal": None if attempt.minimal is None else plain(attempt.minimal),
        "minimal_summary": None if attempt.minimal is None else attempt.minimal.summary(),
        "minimal_shown": attempt.shown,
        "stats": None if failure is None else plain(failure.stats),
        "worst_ratio": attempt.worst_ratio,
        "binaries": plain(attempt.binaries),
        "seed": store.manifest.seed,
        "seconds": seconds,
        "run": str(store.path),
    }


def _detail(attempt: Attempt) -> str:
    for name in ("detail", "reason"):
        if hasattr(attempt.verdict, name):
            return str(getattr(attempt.verdict, name))
    return ""
