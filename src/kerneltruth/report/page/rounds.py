"""The page's part on refinement: the effect of each round. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kerneltruth.analysis.groups import METHOD, Group
from kerneltruth.documents.effects import ChainFates, RefinementTables, RoundChanges, RoundRates
from kerneltruth.report.page.cells import (
    Cell,
    PageTable,
    column,
    factor,
    row,
    share,
    table,
    text,
    whole,
)
from kerneltruth.report.page.charts import ChartLine, ChartPoint, StepChart, rate_point
from kerneltruth.report.page.scales import LogScale, speed_scale
from kerneltruth.report.page.wording import (
    label,
    method_label,
    row_label,
    share_said,
    times,
    times_interval,
)

MOST_REPAIRS = 4
SHARES = {"call": "loads and runs", "exe": "is right", "kept": "best so far is right"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsPart:
    """Charts and tables of methods that work in rounds."""

    charts: Sequence[StepChart]
    rounds: PageTable
    fates: PageTable
    changes: PageTable


def rounds_part(found: RefinementTables) -> RoundsPart | None:
    """Make the part; None where no method works in rounds."""
    if not found.rounds:
        return None
    return RoundsPart(
        charts=_charts(found),
        rounds=_round_table(found.rounds),
        fates=_fate_table(found.fates),
        changes=_change_table(found.changes),
    )


def _charts(found: RefinementTables) -> list[StepChart]:
    known = [
        end
        for r in found.rounds
        for end in (r.speedup.value, r.speedup.low, r.speedup.high)
        if end is not None
    ]
    scale = speed_scale(known)
    groups: dict[Group, list[RoundRates]] = {}
    for r in found.rounds:
        groups.setdefault(r.group(METHOD), []).append(r)
    return [_chart(group, own, scale, bool(known)) for group, own in groups.items()]


def _chart(group: Group, own: Sequence[RoundRates], scale: LogScale, timed: bool) -> StepChart:
    places = [round(6 + 88 * i / max(1, len(own) - 1), 2) for i in range(len(own))]
    at = list(zip(places, own, strict=True))
    return StepChart(
        name=method_label(*group),
        places=[(x, str(r.round)) for x, r in at],
        shares=[
            ChartLine(
                label=said,
                kind=kind,
                points=[rate_point(x, getattr(r, kind), f"{said}, round {r.round}") for x, r in at],
            )
            for kind, said in SHARES.items()
        ],
        speeds=[_speed_line(at, scale)] if timed else [],
        ticks=[replace(tick, at=100 - tick.at) for tick in scale.ticks()],
        said="; ".join(
            f"round {r.round}: {share_said(r.exe)} right, {share_said(r.call)} load and run"
            for r in own
        ),
    )


def _speed_line(at: Sequence[tuple[float, RoundRates]], scale: LogScale) -> ChartLine:
    points = [
        ChartPoint(
            x=x,
            y=100 - scale.at(r.speedup.value),
            low=_down(r.speedup.low, scale),
            high=_down(r.speedup.high, scale),
            said=f"round {r.round}: {times(r.speedup.value)} {times_interval(r.speedup)}".strip(),
        )
        for x, r in at
        if r.speedup.value is not None
    ]
    return ChartLine(label="speedup over eager", kind="speed", points=points)


def _down(value: float | None, scale: LogScale) -> float | None:
    return None if value is None else round(100 - scale.at(value), 2)


def _round_table(rows: Sequence[RoundRates]) -> PageTable:
    columns = [
        column("method", number=False),
        column("round"),
        column("answers", hint="in all; with an attempt in this round"),
        column("loads and runs"),
        column("is right"),
        column("best so far is right"),
        column("not judged", hint="in the latest round; counted in every share"),
        column("speedup", hint="geometric mean of right, timed answers"),
        column("speedup, same answers", hint="right and timed in every round so far"),
    ]
    made = [
        row(
            row_label(r, METHOD),
            [
                whole(r.round),
                text(f"{r.chains:,}; {r.made:,}", value=r.made),
                share(r.call),
                share(r.exe),
                share(r.kept),
                whole(r.not_judged),
                factor(r.speedup),
                factor(r.steady),
            ],
        )
        for r in rows
    ]
    return table("rounds", "Rates after each round, by each answer's latest round.", columns, made)


def _fate_table(fates: Sequence[ChainFates]) -> PageTable:
    columns = [
        column("method", number=False),
        column("answers"),
        column("right in every round"),
        column("rescued", hint="wrong at first, right at the last"),
        column("right again", hint="right at first and at the last, wrong between"),
        column("lost", hint="right at some time, wrong at the last"),
        column("never right"),
        column("not judged", hint="in any round"),
        column("speedup, right in every round"),
        column("speedup, rescued"),
    ]
    rows = [
        row(
            row_label(f, METHOD),
            [
                whole(f.chains),
                share(f.persistent),
                share(f.rescued),
                share(f.regained),
                share(f.lost),
                share(f.never),
                share(f.not_judged),
                factor(f.persistent_speedup),
                factor(f.rescued_speedup),
            ],
        )
        for f in fates
    ]
    return table(
        "fates",
        "How answers end after all their rounds. Rounds that could not be judged are ignored.",
        columns,
        rows,
    )


def _change_table(changes: Sequence[RoundChanges]) -> PageTable:
    columns = [
        column("method", number=False),
        column("steps", hint="from one round to the next"),
        column("repaired", hint="wrong, then right; of judged steps that start wrong"),
        column("regressed", hint="right, then wrong; of judged steps that start right"),
        column("faster", hint="by more than interval and noise floor, of timed steps"),
        column("slower"),
        column("cannot tell"),
        column("what was repaired", number=False),
    ]
    rows = [row(row_label(c, METHOD), _change_cells(c)) for c in changes]
    return table("changes", "Effect of one more round.", columns, rows)


def _change_cells(c: RoundChanges) -> list[Cell]:
    repairs = [f"{label(kind)} {n:,}" for kind, n in list(c.repairs.items())[:MOST_REPAIRS]]
    if len(c.repairs) > MOST_REPAIRS:
        repairs.append(f"{len(c.repairs) - MOST_REPAIRS} more kinds")
    return [
        whole(c.steps),
        share(c.repaired),
        share(c.regressed),
        text(f"{c.improved:,} of {c.timed:,}", value=c.improved),
        text(f"{c.worsened:,} of {c.timed:,}", value=c.worsened),
        text(f"{c.unsure:,} of {c.timed:,}", value=c.unsure),
        text(", ".join(repairs)),
    ]
