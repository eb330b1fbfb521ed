"""The page's parts on how often candidates run, are right and are timed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kerneltruth.analysis.illusions import illusions, rejected
from kerneltruth.analysis.intervals import Rate, rate
from kerneltruth.analysis.metrics import PassRow, RateRow, pass_rates, rates, unsolved
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import Result
from kerneltruth.analysis.speeds import EAGER, fast_p, speedups
from kerneltruth.report.page.cells import (
    column,
    factor,
    row,
    share,
    share_estimate,
    table,
    whole,
)
from kerneltruth.report.page.wording import NO_CATEGORY, count, label, method_label

KS = (1, 2, 5, 10)
PS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)


def tiles(study: Study, *, seed: int = 0) -> list[dict[str, Any]]:
    """The page's first numbers, each with its denominator."""
    answers = study.answers
    total = rates(answers)[0]
    speed = speedups(answers, EAGER, seed=seed)[0]
    every = unsolved(answers)[0]
    asked = [r for r in answers if any(s in ("pass", "fail") for s in r.checks.values())]
    fooled = rate(len(illusions(answers)), sum(map(rejected, asked)))
    return [
        _tile("Loads and runs", share(total.call, part="call"), "the call stage: it returns"),
        _tile("Is right", share(total.exe, part="exe"), "the exe stage: no case finds it wrong"),
        _tile("Is timed", share(total.perf, part="perf"), "the perf stage: right, with a time"),
        _tile(
            "Slower than eager",
            share(speed.slower, part="slower"),
            f"of those timed; {speed.surely_slower} beyond their interval",
        ),
        _tile(
            "Speedup over eager",
            {**factor(speed.mean), "counts": f"{speed.timed} of {speed.correct} right ones timed"},
            "geometric mean; its interval resamples tasks",
        ),
        _tile(
            "Tasks no method solves",
            share(every.unsolved),
            _partial(every.partial),
        ),
        _tile(
            "Illusions",
            share(fooled, part="illusions"),
            "wrong kernels that a peer's check passes, of the wrong ones it was asked about",
        ),
        _tile(
            "Not judged",
            share(rate(total.not_judged, total.attempts), part="open"),
            "this machine or the suite could not tell; counted in every rate",
        ),
    ]


def _tile(label: str, cell: dict[str, Any], hint: str) -> dict[str, Any]:
    return {"label": label, "cell": cell, "hint": hint}


def _partial(tasks: int) -> str:
    if not tasks:
        return "of the tasks on which every method has a judged answer"
    return f"on {tasks} more, some method has no judged answer"


_STAGES = (
    column("answers"),
    column("loads and runs", hint="call"),
    column("is right", hint="exe"),
    column("is timed", hint="perf"),
)


def by_category(answers: Sequence[Result]) -> dict[str, Any]:
    """Rates by category: the chart is the table."""
    rows = [
        row(
            label(found.group[0] or NO_CATEGORY),
            [whole(found.tasks), *_stages(found)],
            group=number,
        )
        for number, found in enumerate(_in_order(rates(answers, ("category",))))
    ]
    columns = [column("category", number=False), column("tasks"), *_STAGES]
    caption = "Answers by category: how many load, are right, and are timed."
    return table("by-category", caption, columns, rows, filtered=True)


def _in_order(rows: Sequence[RateRow]) -> list[RateRow]:
    """By name, as the script numbers categories; what has none is named like the others."""
    return sorted(rows, key=lambda r: r.group[0] or NO_CATEGORY)


def funnel(answers: Sequence[Result]) -> dict[str, Any]:
    """Rates by method, stage after stage."""
    faster = {r.group: r for r in fast_p(answers, (1.0,), EAGER, ("method", "model"))}
    rows = [
        row(
            method_label(*_pair(found.group)),
            [*_stages(found), share(faster[found.group].share, part="faster")],
            group=number,
        )
        for number, found in enumerate(rates(answers, ("method", "model")))
    ]
    columns = [column("method", number=False), *_STAGES, column("faster than eager")]
    caption = "What is left of each method's answers, stage after stage, of all its answers."
    return table("funnel", caption, columns, rows, filtered=True)


def _pair(group: tuple[str | None, ...]) -> tuple[str | None, str | None]:
    method, model = group
    return method, model


def _stages(found: RateRow) -> list[dict[str, Any]]:
    return [
        whole(found.attempts, part="answers"),
        share(found.call, part="call"),
        share(found.exe, part="exe"),
        share(found.perf, part="perf"),
    ]


def by_dtype(answers: Sequence[Result]) -> dict[str, Any]:
    """Rates by dtype, of the answers that came to a case of it."""
    rows = [
        row(
            label(found.group[0] or "none"),
            [whole(found.attempts), whole(found.stopped_before), *_stages(found)[1:]],
        )
        for found in rates(answers, ("dtype",))
    ]
    columns = [
        column("dtype", number=False),
        column("answers", hint="judged in this dtype, or never run"),
        column("stopped before", hint="failed in another dtype first; not among the answers"),
        *_STAGES[1:],
    ]
    caption = (
        "Answers by dtype: an answer counts in each dtype that it was judged in. Kernels are timed "
        "in the first dtype of their task."
    )
    return table("by-dtype", caption, columns, rows)


def pass_at(answers: Sequence[Result], *, seed: int = 0) -> dict[str, Any] | None:
    """pass@k by method, for the k that any method has enough samples for; None if only k = 1."""
    found = pass_rates(answers, KS, seed=seed)
    ks = [k for k in KS if any(r.k == k and r.tasks for r in found)]
    if len(ks) < 2:
        return None
    groups: dict[tuple[str | None, ...], dict[int, Any]] = {}
    for r in found:
        groups.setdefault(r.group, {})[r.k] = r
    rows = [
        row(method_label(*_pair(group)), [_pass(own[k]) for k in ks])
        for group, own in groups.items()
    ]
    columns = [column("method", number=False), *(column(f"pass@{k}") for k in ks)]
    caption = (
        "pass@k: the chance that k samples hold a right one, mean over the tasks that have k "
        "judged samples."
    )
    return table("pass-at-k", caption, columns, rows)


def _pass(found: PassRow) -> dict[str, Any]:
    tasks = f"{count(found.tasks)} of {count(found.tasks + found.short)} tasks"
    return share_estimate(found.value) | {"counts": tasks}


def fast(answers: Sequence[Result], baseline: str) -> dict[str, Any]:
    """fast_p by method."""
    groups: dict[tuple[str | None, ...], list[Rate]] = {}
    for found in fast_p(answers, PS, baseline, ("method", "model")):
        groups.setdefault(found.group, []).append(found.share)
    rows = [row(method_label(*_pair(g)), [share(s) for s in own]) for g, own in groups.items()]
    columns = [column("method", number=False), *(column(f"p = {p:g}") for p in PS)]
    caption = f"fast_p: answers that are right and more than p times as fast as {baseline}, of all."
    return table(f"fast-p-{baseline}", caption, columns, rows)
