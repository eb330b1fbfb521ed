"""The page's part on speed: distributions with intervals, and efficiency. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kerneltruth.analysis.groups import METHOD, Group, grouped
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import Result
from kerneltruth.analysis.speeds import baselines_of, fast_p
from kerneltruth.analysis.study import CATEGORY
from kerneltruth.documents.analysis import AnalyzeDocument
from kerneltruth.documents.rates import EfficiencyRow, FastShare, SpeedupRow
from kerneltruth.report.page.cells import (
    Cell,
    PageTable,
    StripCell,
    column,
    factor,
    number,
    row,
    share,
    table,
    text,
    whole,
)
from kerneltruth.report.page.charts import MOST_LINES, ChartLine, StepChart, rate_point
from kerneltruth.report.page.rates import fast
from kerneltruth.report.page.scales import AxisTick, LogScale, bars, dots, speed_scale
from kerneltruth.report.page.wording import label, percent, row_label, share_said, times

MOST_BASELINES = 6
# Width of a tick's name, in percent of the narrowest strip.
NAME_WIDTH = 16.0
NAMED_PS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
CURVE_PS = tuple(round(2 ** (i / 4), 4) for i in range(-8, 21))
BY = ((METHOD, "method"), (CATEGORY, "category"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedPart:
    """Everything about speeds against one baseline; `devices` is None of one device."""

    baseline: str
    methods: PageTable
    categories: PageTable
    devices: PageTable | None
    curves: Sequence[StepChart]
    fast: Sequence[PageTable]
    ticks: Sequence[AxisTick]


def speed_parts(found: AnalyzeDocument, study: Study) -> list[SpeedPart]:
    """Make for each baseline strips by method, category and device on one scale, and fast_p."""
    return [_against(found, study, b) for b in baselines_of(study.answers)[:MOST_BASELINES]]


def _against(found: AnalyzeDocument, study: Study, baseline: str) -> SpeedPart:
    answers = study.answers
    known = [s for r in answers if r.correct and (s := r.speedup(baseline)) is not None]
    scale = speed_scale(known)
    rows = [r for r in found.speedups if r.baseline == baseline]
    return SpeedPart(
        baseline=label(baseline),
        methods=_strips(rows, grouped(answers, METHOD), METHOD, "method", scale),
        categories=_strips(rows, grouped(answers, CATEGORY), CATEGORY, "category", scale),
        devices=None
        if len(study.devices) < 2
        else _strips(
            rows, {(d,): study.answers_on(d) for d in study.devices}, ("device",), "device", scale
        ),
        curves=[c for by, what in BY if (c := _curve(answers, baseline, by, what, known))],
        fast=[fast(found, baseline, by, what) for by, what in BY],
        ticks=scale.ticks(apart=NAME_WIDTH),
    )


def _curve(
    answers: Sequence[Result],
    baseline: str,
    by: tuple[str, ...],
    what: str,
    speeds: Sequence[float],
) -> StepChart | None:
    """Draw fast_p from p to p; None for one category, or more groups than lines tell apart."""
    least = 1 if by == METHOD else 2
    if not least <= len(grouped(answers, by)) <= MOST_LINES or not speeds:
        return None
    ps = [p for p in CURVE_PS if p <= max(2.0, *speeds)]
    scale = LogScale(low=ps[0], high=ps[-1])
    lines: dict[str, list[FastShare]] = {}
    for found in fast_p(answers, ps, baseline, by):
        lines.setdefault(row_label(found, by), []).append(found)
    return StepChart(
        name=f"fast_p by {what}, for p from {times(ps[0])} to {times(ps[-1])}",
        places=[(scale.at(p), f"{p:g}") for p in NAMED_PS if p <= ps[-1]],
        shares=[
            ChartLine(
                label=name,
                kind=f"c{number}",
                points=[rate_point(scale.at(f.p), f.share, f"{name}, p = {f.p:g}") for f in own],
            )
            for number, (name, own) in enumerate(lines.items())
        ],
        said="; ".join(
            f"{name}: {share_said(f.share)} above {times(f.p)}"
            for name, own in lines.items()
            for f in own
            if f.p == 1
        ),
    )


def _strips(
    speeds: Sequence[SpeedupRow],
    members: Mapping[Group, Sequence[Result]],
    by: tuple[str, ...],
    what: str,
    scale: LogScale,
) -> PageTable:
    baseline = speeds[0].baseline
    rows = []
    for found in (r for r in speeds if r.is_by(by)):
        own = [s for r in members[found.group(by)] if r.correct and (s := r.speedup(baseline))]
        rows.append(row(row_label(found, by), _speed_cells(found, own, scale)))
    columns = [
        column(what, number=False),
        column("speedups", number=False, hint="one mark for each right, timed kernel"),
        column("geometric mean"),
        column("median"),
        column("timed", hint="of the right ones"),
        column("slower", hint="below 1x"),
        # In one line: on a phone a narrow column would make the whole head tall.
        column("faster,\u00a0tie,\u00a0slower", hint="by more than interval and noise"),
    ]
    caption = f"Speedups of right answers over {label(baseline)}, by {what}."
    return table(f"speed-{what}-{baseline}", caption, columns, rows)


def _speed_cells(found: SpeedupRow, own: Sequence[float], scale: LogScale) -> list[Cell]:
    mean = found.mean
    outcomes = (found.surely_faster, found.ties, found.surely_slower)
    return [
        StripCell(
            dots=dots(own, scale),
            bars=bars(own, scale),
            ticks=scale.ticks(),
            named=[tick for tick in scale.ticks(apart=NAME_WIDTH) if tick.label],
            mean=None if mean.value is None else scale.at(mean.value),
            low=None if mean.low is None else scale.at(mean.low),
            high=None if mean.high is None else scale.at(mean.high),
            value=mean.value,
        ),
        factor(mean),
        number(found.median, times),
        text(f"{found.timed:,} of {found.correct:,}", value=found.timed),
        share(found.slower),
        text(", ".join(f"{n:,}" for n in outcomes), value=found.surely_faster),
    ]


def efficiency_table(rows: Sequence[EfficiencyRow]) -> PageTable | None:
    """Make the table of efficiency by category; None if nothing has one."""
    found = [r for r in rows if r.is_by(CATEGORY)]
    if not found:
        return None
    made = [
        row(
            row_label(r, CATEGORY),
            [
                whole(r.known),
                number(r.mean.value, percent),
                number(r.median, percent),
                text(", ".join(f"{label(name)} {n:,}" for name, n in r.bound_by.items())),
            ],
        )
        for r in found
    ]
    columns = [
        column("category", number=False),
        column("answers"),
        column("geometric mean"),
        column("median"),
        column("bound by", number=False, hint="shapes"),
    ]
    caption = "Efficiency: the device's least possible time over the kernel's time."
    return table("efficiency", caption, columns, made)
