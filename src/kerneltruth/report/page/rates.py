"""The page's parts on shares of candidates that run, are right and timed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kerneltruth.analysis.groups import METHOD, Group
from kerneltruth.analysis.intervals import clustered_rate, rate
from kerneltruth.analysis.metrics import pass_rates
from kerneltruth.analysis.results import Result
from kerneltruth.analysis.speeds import EAGER, fast_p, speedups
from kerneltruth.analysis.study import CATEGORY, PS
from kerneltruth.documents.analysis import AnalyzeDocument
from kerneltruth.documents.estimates import RateRecord
from kerneltruth.documents.rates import AuditedKernels, PassAtK, StageRates
from kerneltruth.documents.verdict import NOT_JUDGED
from kerneltruth.report.page.cells import (
    Cell,
    Column,
    PageTable,
    ValueCell,
    column,
    factor,
    row,
    share,
    share_estimate,
    table,
    text,
    whole,
)
from kerneltruth.report.page.charts import MOST_LINES, ChartLine, StepChart, share_point
from kerneltruth.report.page.scales import LogScale
from kerneltruth.report.page.wording import (
    NO_CATEGORY,
    count,
    label,
    method_label,
    percent,
    row_label,
)

DTYPES = ("dtype",)
KS = (1, 2, 5, 10)
# A curve has every budget up to here; beyond it, each is a quarter larger.
EACH_K = 16
NOT_TRIED = "not tried"
ILLUSIONS = (
    "kernels that a peer's check passes and the judge rejects, of all that the judge rejects and "
    "that check decided on; every round counts, the same kernel once"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One of the page's first numbers."""

    label: str
    cell: ValueCell
    hint: str


def tiles(found: AnalyzeDocument, answers: Sequence[Result]) -> list[Tile]:
    """Make the page's first numbers, each with its denominator."""
    if found.audit is not None:
        return _audit_tiles(found.audit)
    total = found.rates.overall
    open_ = clustered_rate((r.task, r.verdict in NOT_JUDGED) for r in answers)
    return [
        _tile("Loads and runs", _stage(total.call, "call"), "the call stage: it returns"),
        _tile("Is right", _stage(total.exe, "exe"), "no case finds it wrong, nor a timed call"),
        *_speed_tiles(total, answers),
        *_unsolved_tiles(found),
        *_illusion_tiles(found.illusions.any_check),
        _tile(
            "Not judged",
            share(open_, part="open"),
            "this machine or the suite could not judge them; they stay in every denominator",
        ),
    ]


def _speed_tiles(total: StageRates, answers: Sequence[Result]) -> list[Tile]:
    """Make the tiles of speed; none where nothing was timed."""
    speed = speedups(answers, EAGER)[0]
    if not speed.timed:
        return []
    return [
        _tile("Is timed", _stage(total.perf, "perf"), "the perf stage: right, with a time"),
        _tile(
            "Slower than eager",
            share(speed.slower, part="slower"),
            f"of those timed; {speed.surely_slower} beyond their interval",
        ),
        _tile(
            "Speedup over eager",
            factor(speed.mean, counts=f"{speed.timed} of {speed.correct} right ones timed"),
            "geometric mean, with an interval over tasks",
        ),
    ]


def _illusion_tiles(found: RateRecord) -> list[Tile]:
    """Make the tile of illusions; none where no peer check decided on a rejected kernel."""
    if not found.denominator:
        return []
    return [_tile("Illusions", share(found, part="illusions"), ILLUSIONS)]


def _audit_tiles(found: AuditedKernels) -> list[Tile]:
    """Make the tiles of an audit: its kernels are chosen, so a share has no interval."""
    hint = f"of the {count(found.kernels)} kernels of the built-in corpus that the audit judged"
    pairs = (
        ("Controls clean", found.controls_clean, found.controls),
        ("Bugs caught", found.bugs_caught, found.bugs),
    )
    return [_tile(name, text(f"{count(n)} of {count(of)}"), hint) for name, n, of in pairs]


def _unsolved_tiles(found: AnalyzeDocument) -> list[Tile]:
    every = found.unsolved.overall
    return [_tile("Tasks no method solves", share(every.unsolved), _partial(every.partial))]


def _stage(found: RateRecord, part: str) -> ValueCell:
    return share(found, part=part, unknown=NOT_TRIED)


def _tile(label: str, cell: ValueCell, hint: str) -> Tile:
    return Tile(label=label, cell=cell, hint=hint)


def _partial(tasks: int) -> str:
    if not tasks:
        return "of the tasks on which every method has a judged answer"
    return f"{tasks} more are left out: some method has no judged answer there"


_STAGES = {
    "call": column("loads and runs", hint="call"),
    "exe": column("is right", hint="exe"),
    "perf": column("is timed", hint="perf"),
}


def _tried(found: AnalyzeDocument) -> list[str]:
    """Return the stages to show: those that some run had, and the first two anyway."""
    untried = found.rates.overall.perf.rate is None
    return [stage for stage in _STAGES if stage != "perf" or not untried]


def by_category(found: AnalyzeDocument) -> PageTable:
    """Make the table of rates by category, which is also their chart."""
    stages = _tried(found)
    rows = [
        row(
            row_label(r, CATEGORY),
            [whole(r.tasks), *_stages(r, stages)],
            group=number,
        )
        for number, r in enumerate(_in_order(found.rates.rows(CATEGORY)))
    ]
    columns = [column("category", number=False), column("tasks"), *_stage_columns(stages)]
    caption = "Answers by category, and those that pass each stage."
    return table("by-category", caption, columns, rows, filtered=True)


def _in_order(rows: Sequence[StageRates]) -> list[StageRates]:
    return sorted(rows, key=lambda r: r.group(CATEGORY)[0] or NO_CATEGORY)


def funnel(found: AnalyzeDocument, answers: Sequence[Result]) -> PageTable:
    """Make the table of rates by method and stage."""
    stages = _tried(found)
    columns = [column("method", number=False), *_stage_columns(stages)]
    faster = {}
    if "perf" in stages:
        faster = {r.group(METHOD): r.share for r in fast_p(answers, (1.0,), EAGER, METHOD)}
        columns.append(column("faster than eager"))
    rows = [
        row(
            row_label(r, METHOD),
            [
                *_stages(r, stages),
                *(share(faster[g], part="faster") for g in [r.group(METHOD)] if g in faster),
            ],
            group=number,
        )
        for number, r in enumerate(found.rates.rows(METHOD))
    ]
    caption = "Answers of each method that pass each stage, of all its answers."
    return table("funnel", caption, columns, rows, filtered=True)


def _stages(found: StageRates, stages: Sequence[str]) -> list[Cell]:
    return [
        whole(found.attempts, part="answers"),
        *(_stage(getattr(found, part), part) for part in stages),
    ]


def _stage_columns(stages: Sequence[str]) -> list[Column]:
    return [column("answers"), *(_STAGES[stage] for stage in stages)]


def by_dtype(found: AnalyzeDocument) -> PageTable:
    """Make the table of rates by dtype: known to fail, known to be right."""
    timed = "perf" in _tried(found)
    rows = [
        row(
            label(r.group(DTYPES)[0] or "none"),
            [
                whole(r.attempts),
                *(
                    share(one or rate(0, 0), unknown=NOT_TRIED)
                    for one in (r.failed, r.exe, r.exe_most, *([r.perf] if timed else []))
                ),
                whole(r.stopped_before),
            ],
        )
        for r in found.rates.rows(DTYPES)
    ]
    columns = [
        column("dtype", number=False),
        column("answers", hint="to tasks that have the dtype"),
        column("fails in it", hint="breaks or refuses what decides, or this dtype"),
        column("is right, at least", hint="in all that decides, and in this dtype"),
        column("is right, at most", hint="if all that are open are"),
        *([column("is timed", hint="in the first dtype of a task")] if timed else []),
        column("is open", hint="something of this was not tried"),
    ]
    caption = (
        "Answers by dtype. Where some were only partly tried in a dtype, the share of right "
        "answers lies between a lower and an upper bound."
    )
    return table("by-dtype", caption, columns, rows)


def pass_at(found: AnalyzeDocument) -> PageTable | None:
    """Make the table of pass@k, for k with enough samples; None if only k = 1."""
    ks = sorted({r.k for r in found.pass_at_k if r.tasks})
    if len(ks) < 2:
        return None
    groups: dict[Group, dict[int, PassAtK]] = {}
    for r in found.pass_at_k:
        groups.setdefault(r.group(METHOD), {})[r.k] = r
    rows = [row(method_label(*g), [_pass(own[k]) for k in ks]) for g, own in groups.items()]
    columns = [column("method", number=False), *(column(f"pass@{k}") for k in ks)]
    caption = (
        "pass@k: the chance that k samples hold a right one, mean over the tasks that have k "
        "judged samples."
    )
    return table("pass-at-k", caption, columns, rows)


def budgets(answers: Sequence[Result], *, each: int = 0) -> tuple[int, ...]:
    """Return numbers of samples up to the most that a task has of a method: the last is that.

    Up to `each` there is every number; beyond, with it, steps of a quarter, else those of `KS`.
    """
    samples = Counter((r.method, r.model, r.task) for r in answers if r.judged)
    most = max(samples.values(), default=1)
    found = {k for k in KS if k < most} | {most} | set(range(1, min(each, most) + 1))
    k = each
    while 0 < k < most:
        found.add(k)
        k += max(1, k // 4)
    return tuple(sorted(found))


def budget_curve(answers: Sequence[Result]) -> StepChart | None:
    """Draw pass@k against the budget of k samples; None where no method has two."""
    ks = budgets(answers, each=EACH_K)
    lines: dict[str, list[PassAtK]] = {}
    for found in pass_rates(answers, ks):
        if found.tasks:
            lines.setdefault(method_label(*found.group(METHOD)), []).append(found)
    if len(ks) < 2 or len(lines) > MOST_LINES:
        return None
    scale = LogScale(low=1, high=ks[-1])
    return StepChart(
        name=f"pass@k against the budget, for k from 1 to {ks[-1]}",
        places=[(scale.at(k), str(k)) for k in budgets(answers)],
        shares=[
            ChartLine(
                label=name,
                kind=f"c{number}",
                points=[share_point(scale.at(f.k), f.value, f"{name}, pass@{f.k}:") for f in own],
            )
            for number, (name, own) in enumerate(lines.items())
        ],
        said="; ".join(
            f"{name}: {percent(f.value.value)} with {f.k}"
            for name, own in lines.items()
            for f in own
        ),
    )


def _pass(found: PassAtK) -> ValueCell:
    tasks = f"{count(found.tasks)} of {count(found.tasks + found.short)} tasks"
    return share_estimate(found.value, counts=tasks)


def fast(
    found: AnalyzeDocument, baseline: str, by: Sequence[str] = METHOD, what: str = "method"
) -> PageTable:
    """Make the table of fast_p by one dimension."""
    groups: dict[str, list[RateRecord]] = {}
    for r in found.fast_p:
        if r.baseline == baseline and r.is_by(by):
            groups.setdefault(row_label(r, by), []).append(r.share)
    rows = [row(name, [share(s) for s in own]) for name, own in groups.items()]
    columns = [column(what, number=False), *(column(f"p = {p:g}") for p in PS)]
    caption = (
        f"fast_p by {what}: answers that are right and more than p times as fast as {baseline}, "
        "of all."
    )
    return table(f"fast-p-{what}-{baseline}", caption, columns, rows)
