"""Which obligations PyTorch's own functions hold: each task of a suite, under one contract.

    python benchmarks/suite_obligations.py [SUITE ...] [--contract torch] [--device auto]

A SUITE is core, kernelbenchx, tritonbench, earlier, or `NAME:PATH` of a checkout, where NAME is
kernelbench, flashinfer, gpuemu or gpumode; the first four if none is named. Nothing excuses a
function here: what is void for a candidate, since PyTorch fails it too, is broken. The exit code is
1 if any obligation of any task is broken. What decides and was not tried is listed with the reason.
A suite that takes longer than a machine is lent is judged in parts: `--part 0:100`, or `--seconds
400`, after which the report names the tasks that are left.
`kernel` is left out: PyTorch's functions have none of their own.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
import torch

from kerneltruth.documents.records import OBLIGATIONS, Attempt, ProfileEntry
from kerneltruth.engine.requests import CASES
from kerneltruth.engine.scheduling.local_pool import LocalPool
from kerneltruth.engine.scheduling.scheduler import Done, Lost
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.contract import CONTRACTS, DEFAULT_CONTRACT, contract_named
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import opened
from kerneltruth.suites.pytorch import eager_of, own_function
from kerneltruth.tasks.registry import eager_modules, find, key_of, opened_tasks, suites

STATUSES = ("held", "refused", "not_tried", "not_applicable", "broken")
# A function of PyTorch may call each of its kernels for the first time.
DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One task whose function is judged."""

    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The tasks of a suite that are judged: those named, or else a part of all."""

    only: list[str]
    part: slice


def attempt_of(task: str, runner: Runner, cache: ExpectationCache, plan: Plan) -> Attempt:
    """PyTorch's own function, judged as a candidate that nothing excuses."""
    found = find(task)
    candidate = eager_of(found) or own_function(found)
    assert candidate is not None
    with CandidateSession(found, candidate, runner, cache, deadline_s=DEADLINE_S) as session:
        for event in judge_cases(session, plan):
            if isinstance(event, AttemptEnded):
                return event.attempt
    raise AssertionError("an attempt ends with its event")


def attempts(
    suite: str, chosen: Chosen, runner: Runner, plan: Plan, *, workers: int, until: float
) -> Iterator[tuple[str, Attempt | str]]:
    """Each chosen task of a suite with its attempt, or with why there is none."""
    known = opened_tasks(suite)
    every = list(eager_modules(suite) if known is None else known)
    keys = [key_of(name, suite) for name in chosen.only] or every[chosen.part]
    # The last tasks of a user's suite are usually the largest: start them early.
    jobs = [Job(task=key) for key in (keys if known is None else keys[::-1])]
    cache = ExpectationCache(Policy())

    def judge(job: Job, _: Any) -> Attempt | str:
        return find(job.task).unrefereeable or attempt_of(job.task, runner, cache, plan)

    left = {job.task for job in jobs}
    for event in LocalPool(work=judge, workers=workers, until=until).run(jobs):
        match event:
            case Done(job=job, result=result):
                left.discard(job.task)
                yield job.task, result
            case Lost(job=job, reason=reason):
                left.discard(job.task)
                yield job.task, reason
    yield from ((task, "the time was over") for task in sorted(left))


def rows(found: dict[str, Attempt]) -> list[tuple[Any, ...]]:
    """A row of counts for each obligation, dtypes together."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in OBLIGATIONS if name != "kernel"}
    for attempt in found.values():
        for key, entry in attempt.profile.items():
            name = key.partition(".")[0]
            if name in counts:
                counts[name][entry.status] += 1
    return [(name, *(count[status] for status in STATUSES)) for name, count in counts.items()]


def entries(found: dict[str, Attempt], status: str) -> Iterator[tuple[str, str, ProfileEntry]]:
    """The task, name and entry of each obligation of that status."""
    for task, attempt in found.items():
        for key, entry in attempt.profile.items():
            if entry.status == status and key != "kernel":
                yield task, key, entry


def reasons(found: dict[str, Attempt], status: str) -> list[str]:
    """A line for each reason of a status, with the obligations and some tasks that it is of."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for task, key, entry in entries(found, status):
        grouped.setdefault((key.partition(".")[0], entry.reason or ""), []).append(task)
    return [
        f"- {status} {key}, {len(tasks)}: {reason[:200]} ({', '.join(dict.fromkeys(tasks[:4]))})"
        for (key, reason), tasks in sorted(grouped.items(), key=lambda item: -len(item[1]))
    ]


def faults(found: dict[str, Attempt]) -> list[str]:
    """A line for each obligation that is broken, or decides and was not tried."""
    broken = [
        f"- BROKEN {task} {key}: {entry.failure.case.summary() if entry.failure else ''} "
        f"{entry.failure.verdict if entry.failure else ''}"[:600]
        for task, key, entry in entries(found, "broken")
    ]
    untried = [
        f"- NOT TRIED {task} {key}: {entry.reason}"
        for task, key, entry in entries(found, "not_tried")
        if entry.decisive
    ]
    return broken + untried


def unattempted(none: dict[str, str]) -> list[str]:
    """A line for each reason why tasks were not attempted, with all of them."""
    grouped: dict[str, list[str]] = {}
    for task, reason in none.items():
        grouped.setdefault(reason[:300], []).append(task)
    return [f"- NO ATTEMPT, {len(of)}: {why} ({', '.join(of)})" for why, of in grouped.items()]


def section(name: str, found: dict[str, Attempt], none: dict[str, str], s: float) -> list[str]:
    """The paragraph, table and lines of one suite."""
    verdicts = Counter(attempt.verdict.word for attempt in found.values())
    said = ", ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common())
    return [
        f"### {name}: {len(found)} tasks in {s:.0f} s: {said}",
        "",
        *machine.table(("obligation", *(s.replace("_", " ") for s in STATUSES)), rows(found)),
        "",
        *faults(found),
        *reasons(found, "refused"),
        *reasons(found, "not_tried"),
        *unattempted(none),
        "",
    ]


def options_given() -> argparse.Namespace:
    """The options of the command line."""
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", default=[], help="all of the package's own if none")
    parser.add_argument("--contract", default=DEFAULT_CONTRACT, help=", ".join(CONTRACTS))
    parser.add_argument("--cases", type=int, default=CASES, help="per task; more if it takes more")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, help="judges; one per core if left out")
    parser.add_argument("--only", action="append", default=[], help="only this task")
    parser.add_argument("--part", default=":", help="of each suite, such as 0:100 or ::10")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for all suites together")
    return parser.parse_args()


def main() -> int:
    options = options_given()
    torch.set_num_threads(1)
    device = machine.device_of(options)
    workers = options.workers or len(os.sched_getaffinity(0))
    plan = Plan(
        seed=options.seed,
        cases=options.cases,
        whole=True,
        promises=True,
        contract=contract_named(options.contract).name,
        deadline_s=DEADLINE_S,
        compile=False,
    )
    bounds = (int(bound) if bound else None for bound in options.part.split(":"))
    chosen = Chosen(only=options.only, part=slice(*bounds))
    until = time.monotonic() + options.seconds
    lines: list[str] = []
    bad = False
    with Runner(device=device) as runner:
        runner.versions()
        for given in options.suites or suites():
            start = time.monotonic()
            suite_name, _, place = given.partition(":")
            place = place and str(Path(place).resolve())
            found: dict[str, Attempt] = {}
            none: dict[str, str] = {}
            with opened(given, runner, judges=workers) as suite:
                assert suite is not None
                for task, result in attempts(
                    suite, chosen, runner, plan, workers=workers, until=until
                ):
                    if isinstance(result, str):
                        # Where checkouts lie is no part of a report.
                        none[task] = result.replace(f"{place}/", "") if place else result
                    else:
                        found[task] = result
            lines += section(suite_name, found, none, time.monotonic() - start)
            bad |= any(True for _ in entries(found, "broken")) or not found
    named = "_".join(given.partition(":")[0] for given in options.suites)
    part = "" if options.part == ":" else options.part.replace(":", "-")
    name = "_".join(filter(None, ("suite_obligations", plan.contract, named, part)))
    title = f"PyTorch's own functions under the contract `{plan.contract}`"
    machine.publish(name, title, machine.facts(device), lines, folder=options.results)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
