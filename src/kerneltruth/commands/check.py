"""`check`: one kernel file judged."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from kerneltruth.codec import content_hash, plain
from kerneltruth.commands.court import Court, Job
from kerneltruth.commands.devices import choose_device
from kerneltruth.commands.run_folder import cache_root, environment, open_run
from kerneltruth.commands.step import Step
from kerneltruth.commands.storing import store_attempt
from kerneltruth.errors import UserError
from kerneltruth.explain.diagnosis import Effort, diagnose
from kerneltruth.oracle.attempt import Attempt, AttemptEnded, Judgement
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.trial import Plan, Trial, try_candidate
from kerneltruth.oracle.verdict import CompileError, word
from kerneltruth.runner.candidate import load_candidate
from kerneltruth.runs.records import attempt_from_json
from kerneltruth.runs.store import RunStore
from kerneltruth.tasks.suite import TASKS, find

EFFORT = Effort(evaluations=200, seconds=20.0)
DTYPES = ("float32", "float16", "bfloat16", "float64", "int8", "int32", "int64", "bool")
SHORT_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """What the command line says."""

    file: Path
    task: str | None = None
    dtypes: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    cases: int = 48
    bounds: str = "spread"
    tf32: bool = True
    domain: str = "extended"
    targets: tuple[str, ...] = ("sm_90",)
    device: str = "auto"
    seed: int = 0
    out: Path | None = None
    deadline_s: float = 20.0


def run_check(options: CheckOptions) -> Generator[Step, None, dict[str, Any]]:
    """Judge one file; yields steps and returns the document of `check --json`."""
    policy = Policy(
        method=options.bounds,
        tf32=options.tf32,
        calibration=calibration() if options.bounds == "calibrated" else None,
    )
    if options.domain not in ("core", "extended"):
        raise UserError(f"--domain {options.domain!r}: must be core or extended")
    device = choose_device(options.device)
    court = Court(device=device, targets=options.targets, policy=policy, cache_root=cache_root())
    try:
        # The zygote imports torch while this process does the same.
        court.start()
        job = _job(options)
        identity = content_hash([job.candidate.sha256, plain(job.plan), plain(policy), device])
        with open_run(
            options.out, command="check", identity=identity, device=device, seed=options.seed
        ) as store:
            done = [line for line in store.results() if line["key"] == job.name]
            if done:
                attempt = attempt_from_json(done[0]["attempt"])
                return _document(attempt, store, done[0]["finding"])
            attempt = yield from _judge(court, job)
            finding = store_attempt(store, job, attempt, environment(device))
            store.finish()
            return _document(attempt, store, finding)
    finally:
        court.close()


def _job(options: CheckOptions) -> Job:
    candidate = load_candidate(options.file, task_names=tuple(TASKS), task=options.task)
    name = options.task or candidate.entry
    plan = Plan(
        seed=options.seed,
        strategies=options.strategies,
        cases=options.cases,
        dtypes=tuple(_dtype(d) for d in options.dtypes) or None,
        domain="core" if options.domain == "core" else "extended",
        deadline_s=options.deadline_s,
    )
    return Job(name=str(options.file), task=find(name).name, candidate=candidate, plan=plan)


def _dtype(name: str) -> str:
    full = SHORT_DTYPES.get(name, name)
    if full not in DTYPES:
        raise UserError(f"--dtype {name!r}: must be one of {', '.join((*SHORT_DTYPES, *DTYPES))}")
    return full


def _judge(court: Court, job: Job) -> Generator[Step, None, Attempt]:
    judgements: list[Judgement] = []
    task = find(job.task)
    total = job.plan.cases
    with Trial(
        task, job.candidate, court.runner, court.cache, deadline_s=job.plan.deadline_s
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
            return replace(attempt, minimal=found.minimal, explanation=found.explanation)
    if isinstance(attempt.verdict, CompileError):
        return replace(attempt, explanation=attempt.verdict.detail)
    return attempt


def calibration() -> dict[str, float]:
    """The shipped bounds of `calibrated`: p95 of the controls' largest error times 1.5."""
    text = files("kerneltruth.oracle").joinpath("calibration.json").read_text()
    table: dict[str, float] = json.loads(text)["bounds"]
    return table


def _document(attempt: Attempt, store: RunStore, finding: str | None) -> dict[str, Any]:
    verdict = attempt.verdict
    failure = attempt.failure
    return {
        "schema": 1,
        "task": attempt.task,
        "candidate": plain(attempt.candidate),
        "verdict": word(verdict),
        "declined": [{"case": case.summary(), "reason": why} for case, why in attempt.declined],
        "kind": getattr(verdict, "kind", None),
        "detail": _detail(attempt),
        "explanation": attempt.explanation,
        "cases": attempt.cases,
        "failed": attempt.failed,
        "unrefereeable": dict(attempt.unrefereeable),
        "skipped": dict(attempt.skipped),
        "finding": str(store.path / "findings" / finding) if finding else None,
        "failing": None if failure is None else plain(failure.case),
        "failing_summary": None if failure is None else failure.case.summary(),
        "domain": None if failure is None else failure.case.domain,
        "minimal": None if attempt.minimal is None else plain(attempt.minimal),
        "minimal_summary": None if attempt.minimal is None else attempt.minimal.summary(),
        "stats": None if failure is None else plain(failure.stats),
        "worst_ratio": attempt.worst_ratio,
        "binaries": plain(attempt.binaries),
        "seconds": attempt.seconds,
        "run": str(store.path),
    }


def _detail(attempt: Attempt) -> str:
    for name in ("detail", "reason"):
        if hasattr(attempt.verdict, name):
            return str(getattr(attempt.verdict, name))
    return ""
