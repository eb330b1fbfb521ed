"""The smallest shape that each bug of the corpus shrinks to, against exhaustive search.

    python benchmarks/minimal_cases.py [--only NAME] [--seconds 60]

A bug is judged and minimized as `check` does it. Then every smaller shape that the task allows is
asked, the smallest first, whether the bug shows there too: with the dtype, layout and attributes
of the minimal case, and values drawn as for it or as for the first failing case. A bug that shows
on the smallest shape of all leaves nothing to search and is only counted. One that, on its minimal
shape, shows with the values of some seeds and not of others depends on values: a smaller shape may
show it with values that nobody drew. The exit code is 1 if a smaller shape shows another bug.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import machine
import torch
from evaluations import chosen, job_of
from msgspec.structs import replace

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdict import Failed
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.engine.scheduling.local_pool import LocalPool
from kerneltruth.engine.scheduling.scheduler import Done
from kerneltruth.explain.diagnosis import DiagnosisEffort, diagnose
from kerneltruth.explain.inquiry import Inquiry
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.plan import Plan
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import Task

EFFORT = DiagnosisEffort(evaluations=200, seconds=30.0)
SEEDS = range(6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """One bug: its minimal case, and what searching all smaller shapes found.

    Attributes:
        kind: of the verdict.
        minimal: what minimizing found; None if the bug was not caught.
        evaluations: how many cases that took.
        smaller: how many smaller shapes the task allows.
        asked: how many of them were asked before the time was up.
        counterexample: the smallest of them that fails, if one does.
        by_shape: whether the minimal shape fails whatever the seed.
    """

    kind: str
    minimal: Case | None = None
    evaluations: int = 0
    smaller: int = 0
    tried: int = 0
    counterexample: Case | None = None
    by_shape: bool = True


def shapes_up_to(elements: int, count: int) -> Iterator[tuple[int, ...]]:
    """Every tuple of `count` sizes whose product is at most `elements`."""
    if count == 0:
        yield ()
        return
    for n in range(1, elements + 1):
        yield from ((n, *rest) for rest in shapes_up_to(elements // n, count - 1))


def smaller_shapes(task: Task, case: Case) -> list[dict[str, int]]:
    """The shapes that the task allows and that come before the case's, in order."""
    symbols = [s for s, _ in case.dims]
    own = tuple(n for _, n in case.dims)
    # Empty dims stay as they are: the rest of the shape is what is made smaller.
    places = [i for i, n in enumerate(own) if n > 0]
    elements = math.prod(own[i] for i in places)
    found = []
    for sizes in shapes_up_to(elements, len(places)):
        filled = list(own)
        for i, n in zip(places, sizes, strict=True):
            filled[i] = n
        shape = dict(zip(symbols, filled, strict=True))
        before = (math.prod(sizes), tuple(filled)) < (elements, own)
        if before and task.allows(shape, case.settings):
            found.append(shape)
    return sorted(found, key=lambda s: (math.prod(n for n in s.values() if n), tuple(s.values())))


def variants(failing: Case, minimal: Case) -> list[Case]:
    """What to try on each shape: the values drawn as for the minimal case, and as at first."""
    plain = replace(minimal, literals=())
    return list({c.identity: c for c in (plain, replace(plain, recipe=failing.recipe))}.values())


def fails_by_shape(inquiry: Inquiry, cases: list[Case]) -> bool:
    """Whether one of the cases fails with every seed that gives a case which can be judged."""
    return any(_fails_always(inquiry, case) for case in cases)


def _fails_always(inquiry: Inquiry, case: Case) -> bool:
    seeded = [replace(case, seed=seed) for seed in SEEDS]
    judged = [c for c in seeded if inquiry.ask(c) is not None]
    return len(judged) > 1 and all(inquiry.fails(c) for c in judged)


def failure_of(session: CandidateSession, plan: Plan) -> tuple[Judgement | None, list[Judgement]]:
    """The first failing judgement of a candidate, and the others before it."""
    others: list[Judgement] = []
    for event in judge_cases(session, plan):
        if isinstance(event, AttemptEnded):
            failure = event.attempt.failure
            return failure, [j for j in others if j is not failure]
        others.append(event.judgement)
    return None, others


def search(
    evaluator: Evaluator, seconds: float, job: EvaluationRequest, report: Callable[[int], None]
) -> Searched:
    """Minimize one bug, then look for a smaller failing shape."""
    task = find(job.task)
    with CandidateSession(
        task, job.candidate, evaluator.runner, evaluator.cache, deadline_s=20.0
    ) as session:
        failure, others = failure_of(session, job.plan)
        if failure is None:
            return Searched(kind="not caught")
        verdict = failure.verdict
        kind = verdict.kind if isinstance(verdict, Failed) else verdict.word
        found = diagnose(session, failure, others, EFFORT)
        inquiry = Inquiry(session=session, failure=failure, until=math.inf)
        smaller = smaller_shapes(task, found.minimal)
        by_shape = not smaller or fails_by_shape(inquiry, variants(failure.case, found.minimal))
        until = time.monotonic() + seconds
        tried, counterexample = 0, None
        for shape in smaller:
            if time.monotonic() > until:
                break
            tries = (c.with_dims(**shape) for c in variants(failure.case, found.minimal))
            counterexample = next((c for c in tries if inquiry.fails(c)), None)
            tried += 1
            report(1)
            if counterexample is not None:
                break
        return Searched(
            kind=kind,
            minimal=found.minimal,
            evaluations=found.evaluations,
            smaller=len(smaller),
            tried=tried,
            counterexample=counterexample,
            by_shape=by_shape,
        )


def said(found: Searched) -> str:
    if found.counterexample is not None:
        return f"smaller fails: {found.counterexample.summary()}"
    return "smallest" if found.tried == found.smaller else "none smaller found in time"


def lines_of(found: dict[str, Searched]) -> list[str]:
    shaped = {n: s for n, s in found.items() if s.smaller and s.by_shape}
    valued = {n: s for n, s in found.items() if s.smaller and not s.by_shape}
    exact = sum(s.counterexample is None and s.tried == s.smaller for s in shaped.values())
    open_ = sum(s.counterexample is None and s.tried < s.smaller for s in shaped.values())
    missed = sorted(n for n, s in found.items() if s.minimal is None)
    least = len(found) - len(shaped) - len(valued) - len(missed)
    return [
        f"{exact} of {len(shaped)} bugs that a shape shows shrink to the smallest such shape; for",
        f"{open_} the search of all smaller ones ended before its time. {least} more bugs show on",
        f"the smallest shape of all. {len(missed)} not caught{': ' if missed else ''}"
        f"{', '.join(missed)}.",
        "",
        *machine.table(HEAD, rows_of(shaped)),
        "",
        f"{len(valued)} bugs show on their minimal shape with some values only:",
        "",
        *machine.table(HEAD, rows_of(valued)),
    ]


HEAD = ("bug", "minimal case", "kind", "evaluations", "smaller shapes asked", "result")


def rows_of(found: dict[str, Searched]) -> list[tuple[object, ...]]:
    return [
        (name, s.minimal.summary(), s.kind, s.evaluations, f"{s.tried:,} of {s.smaller:,}", said(s))
        for name, s in sorted(found.items())
        if s.minimal is not None
    ]


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], help="only this bug")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each exhaustive search")
    parser.add_argument("--workers", type=int, help="processes; one per core if left out")
    options = parser.parse_args()
    device = machine.device_of(options)
    torch.set_num_threads(1)
    jobs = [job_of(entry, Plan(cases=32, compile=False)) for entry in chosen("bug", options.only)]
    found: dict[str, Searched] = {}
    evaluator = Evaluator(device=device, targets=(), policy=Policy())
    try:
        evaluator.start()
        evaluator.warm()
        judges = options.workers or len(os.sched_getaffinity(0))
        task = partial(search, evaluator, options.seconds)
        for event in LocalPool(work=task, workers=judges).run(jobs):
            if isinstance(event, Done):
                found[event.job.name] = event.result
                print(f"{event.job.name}: {said(event.result)}", file=sys.stderr)
    finally:
        evaluator.close()
    machine.publish(
        "minimal_cases",
        "Minimal cases against exhaustive search",
        machine.facts(device),
        [*lines_of(found), "", f"{len(jobs) - len(found)} lost."],
        folder=options.results,
    )
    wrong = [n for n, s in found.items() if s.counterexample is not None and s.by_shape]
    return int(bool(wrong) or len(found) < len(jobs))


if __name__ == "__main__":
    sys.exit(main())
