"""The leaderboard: ranked methods, and the best kernels of each task. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kerneltruth.analysis.leaderboard import (
    BestKernel,
    Measure,
    RankedMethod,
    best_kernels,
    ranked_methods,
)
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import TORCH_ONLY, Against
from kerneltruth.documents.estimates import EstimateRecord
from kerneltruth.report.page.cells import (
    Cell,
    KernelsCell,
    ListedKernel,
    PageTable,
    ValueCell,
    column,
    factor,
    number,
    row,
    share_estimate,
    table,
    text,
    whole,
)
from kerneltruth.report.page.wording import (
    DASH,
    between,
    count,
    figures,
    label,
    method_label,
    percent,
    times,
)

MEASURES: tuple[tuple[Measure, str, str], ...] = (
    ("fast", "right and faster than eager", "Methods ranked by answers that are right and faster."),
    ("right", "right", "Methods ranked by right answers."),
    (
        "speedup",
        "geometric mean of speedups",
        "Methods ranked by speed, over right and timed answers.",
    ),
)


def leaderboard_part(study: Study) -> list[PageTable]:
    """Make a table of ranks for each measure that anything counts for."""
    parts = []
    for measure, what, caption in MEASURES:
        found = ranked_methods(study.answers, measure)
        if any(method.value is not None for method in found) and any(p.count for p in found):
            parts.append(_ranking(found, measure, what, caption))
    return parts


def _ranking(
    found: tuple[RankedMethod, ...], measure: Measure, what: str, caption: str
) -> PageTable:
    columns = [
        column("method", number=False),
        column("rank", hint="a range where methods are tied"),
        column("tied with"),
        column(what, hint="interval over tasks"),
    ]
    if measure == "speedup":
        columns.append(column("timed"))
    rows = [
        row(
            method_label(p.method, p.model),
            [
                ValueCell(form="number", text=_rank(p), value=p.first),
                whole(p.tied),
                *_score(p, measure),
            ],
        )
        for p in found
    ]
    return table(f"leaderboard-{measure}", caption, columns, rows)


def _score(p: RankedMethod, measure: Measure) -> list[Cell]:
    """Show a share as a bar with its interval, or a speedup and how many it is of."""
    score = EstimateRecord(value=p.value, low=p.low, high=p.high, count=p.total, clusters=0)
    if measure == "speedup":
        return [factor(score), whole(p.count)]
    return [share_estimate(score, counts=f"{count(p.count)} of {count(p.total)}")]


def _rank(p: RankedMethod) -> str:
    if p.first is None or p.last is None:
        return DASH
    return str(p.first) if p.first == p.last else f"{p.first}{DASH}{p.last}"


def best_part(study: Study) -> list[PageTable]:
    """Make a table of the best kernels of each task, for each device."""
    numbers = {(r.run, r.key): i for i, r in enumerate(study.attempts)}
    parts = []
    for device in study.devices:
        own = [r for r in study.attempts if study.device_of(r) == device]
        best = best_kernels(own)
        if best:
            parts.append(_best_table(device, best, numbers, len({r.task for r in own})))
    return parts


def _best_table(
    device: str,
    best: dict[str, tuple[BestKernel, ...]],
    numbers: dict[tuple[int, str], int],
    tasks: int,
) -> PageTable:
    columns = [
        column("task", number=False),
        column("fastest right kernels", number=False, hint="= tied with the fastest"),
        column("speedup over eager"),
        column("interval"),
        column("tied"),
    ]
    rows = []
    one_suite = len({task.partition("/")[0] for task in best}) == 1 and all("/" in t for t in best)
    for task, kernels in best.items():
        top = kernels[0]
        cells: list[Cell] = [
            KernelsCell(
                value=_who(top).lower(),
                kernels=[_listed(b, kernels, numbers) for b in kernels[:MOST_SHOWN]],
                more=max(0, len(kernels) - MOST_SHOWN),
            ),
            number(top.against.speedup, times),
            text(_interval(top.against)),
            whole(sum(b.tied for b in kernels) - 1),
        ]
        rows.append(row(label(task.partition("/")[2] if one_suite else task), cells))
    caption = (
        f"{label(device)}: {count(len(best))} of {count(tasks)} tasks have a right kernel with "
        "a time."
    )
    return table(f"best-{device}", caption, columns, rows)


def _listed(
    best: BestKernel, kernels: Sequence[BestKernel], numbers: Mapping[tuple[int, str], int]
) -> ListedKernel:
    return ListedKernel(
        who=_who(best),
        speed=_speed(best),
        tied=best.tied and sum(k.tied for k in kernels) > 1,
        attempt=numbers[best.run, best.key],
    )


def _speed(best: BestKernel) -> str:
    speedup = times(best.against.speedup)
    own = best.own_time
    return speedup if own is None else f"{speedup}, own {percent(own)} of the device's time"


MOST_SHOWN = 5


def _who(b: BestKernel) -> str:
    made_by = ", ".join(method_label(*pair) for pair in b.methods)
    return f"{made_by} ({TORCH_ONLY})" if b.torch_only else made_by


def _interval(found: Against) -> str:
    if found.low is None or found.high is None:
        return DASH
    return between(figures(found.low), times(found.high))
