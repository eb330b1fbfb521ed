"""The page's first chart: certified kernels that remain after each obligation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kerneltruth.documents.analysis import AnalyzeDocument
from kerneltruth.documents.records import OBLIGATIONS
from kerneltruth.documents.survival import IllusionPlaces, SurvivalCurve, SurvivalTables
from kerneltruth.report.page.cells import PageTable, column, row, share, table, text, whole
from kerneltruth.report.page.charts import ChartLine, StepChart, rate_point
from kerneltruth.report.page.wording import count, label, row_label, share_said

MOST_CHARTS = 3
LINES = {"exe": ("remain", "remain"), "kept": ("remain_most", "at most, with those not tried")}


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalPart:
    """Charts of the peer checks that certify most, and the figures of all.

    Attributes:
        keys: obligations by their numbers in the charts.
        without_profile: certified kernels that an earlier version judged, of all, by check.
    """

    charts: Sequence[StepChart]
    keys: Sequence[str]
    tables: Sequence[PageTable]
    without_profile: Sequence[str]


def survival_part(found: AnalyzeDocument) -> SurvivalPart | None:
    """Make the part; None where no peer check certifies a kernel."""
    tables = found.survival
    if not tables.overall:
        return None
    known = [c for c in tables.overall if c.certified > c.no_profile]
    # Sorting keeps the order of names among equals.
    charted = sorted(known, key=lambda c: c.no_profile - c.certified)[:MOST_CHARTS]
    return SurvivalPart(
        charts=[_chart(c) for c in charted],
        keys=[f"{i} {name}" for i, name in enumerate(OBLIGATIONS, 1)],
        tables=[_figures(known), *_groups(tables)] if known else [],
        without_profile=[
            f"{label(c.check)}: no profile, {count(c.no_profile)} of {count(c.certified)}"
            for c in tables.overall
            if c.no_profile
        ],
    )


def _chart(curve: SurvivalCurve) -> StepChart:
    places = [round(4 + 92 * i / (len(curve.steps) - 1), 2) for i in range(len(curve.steps))]
    at = list(zip(places, curve.steps, strict=True))
    return StepChart(
        name=f"{label(curve.check)}: {count(curve.certified - curve.no_profile)} certified kernels",
        places=[(x, str(i)) for i, x in enumerate(places, 1)],
        shares=[
            ChartLine(
                label=said,
                kind=kind,
                points=[rate_point(x, getattr(s, name), s.obligation) for x, s in at],
            )
            for kind, (name, said) in LINES.items()
        ],
        said="; ".join(f"{s.obligation}: {share_said(s.remain)} remain" for s in curve.steps),
    )


def _figures(curves: Sequence[SurvivalCurve]) -> PageTable:
    rows = [
        row(name, [share(c.steps[i].remain) for c in curves]) for i, name in enumerate(OBLIGATIONS)
    ]
    rows += [
        row(said, [whole(getattr(c.steps[-1], name)) for c in curves])
        for name, said in (("lost_so_far", "lost in all"), ("not_tried", "not tried, of the rest"))
    ]
    columns = [column("after", number=False), *(column(label(c.check)) for c in curves)]
    caption = "Kernels that remain after each obligation, of those that each peer check certifies."
    return table("survival", caption, columns, rows)


def _groups(found: SurvivalTables) -> list[PageTable]:
    made = []
    for breakdown in found.by:
        own = [c for c in breakdown.rows if c.certified > c.no_profile]
        if len({c.group(breakdown.by) for c in own}) < 2:
            continue
        rows = [
            row(
                row_label(c, breakdown.by),
                [text(label(c.check)), share(c.steps[-1].remain), share(c.steps[-1].remain_most)],
            )
            for c in own
        ]
        what = breakdown.by[0]
        columns = [column(what, number=False), column("peer check", number=False)]
        columns += [column("remain"), column("at most", hint="with those not tried")]
        caption = f"Certified kernels that remain after all obligations, by {what}."
        made.append(table(f"survival-{what}", caption, columns, rows))
    return made


def places_table(found: Sequence[IllusionPlaces]) -> list[PageTable]:
    """Make the table of where certified kernels are wrong; none without a peer check."""
    if not found:
        return []
    columns = [
        column("peer check", number=False),
        column("contract", number=False, hint="decided the verdicts"),
        column("published", hint="the benchmark's own inputs"),
        column("core", hint="promised by the prompt; other sizes and finite values by us"),
        column("beyond", hint="what PyTorch's operator takes, promised by no prompt"),
        column("unknown", hint="rejected, without such an obligation"),
    ]
    rows = [
        row(
            label(r.check),
            [
                text(r.contract or "no profile"),
                *map(share, (r.published, r.core, r.beyond, r.unknown)),
            ],
        )
        for r in found
    ]
    caption = "Where certified kernels are wrong, each counted once, at its first place."
    return [table("illusion-places", caption, columns, rows)]
