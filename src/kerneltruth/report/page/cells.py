"""Tables as data: columns, rows, and what each cell shows and sorts by. Pure.

One template draws every table of the page from this form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from kerneltruth.documents.estimates import CorrelationRecord, EstimateRecord, RateRecord
from kerneltruth.report.page.scales import AxisTick, HistogramBar
from kerneltruth.report.page.wording import (
    DASH,
    between,
    count,
    figures,
    percent,
    share_interval,
    share_said,
    times,
    times_interval,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCell:
    """Words.

    Attributes:
        value: what the column sorts by; likewise in the other cells.
        part: the name by which the script counts the cell again; likewise in the others.
    """

    form: ClassVar[str] = "text"
    text: str
    value: str | float
    part: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CountCell:
    """A count."""

    form: ClassVar[str] = "count"
    text: str
    value: int
    part: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberCell:
    """A measured number, or a dash where there is none."""

    form: ClassVar[str] = "number"
    text: str
    value: float | None
    part: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCell:
    """A share with counts and interval, drawn as a bar; `fill` and ends in percent."""

    form: ClassVar[str] = "share"
    text: str
    counts: str
    interval: str
    fill: float | None
    low: float | None
    high: float | None
    value: float | None
    part: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorCell:
    """A speedup with its interval."""

    form: ClassVar[str] = "factor"
    text: str
    counts: str = ""
    interval: str
    value: float | None
    part: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StripCell:
    """Speedups on an axis: dots or a histogram, and their mean with its interval."""

    form: ClassVar[str] = "strip"
    dots: Sequence[float]
    bars: Sequence[HistogramBar]
    ticks: Sequence[AxisTick]
    mean: float | None
    low: float | None
    high: float | None
    value: float | None
    part: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedKernel:
    """A kernel among the best; `attempt` is its number on the page."""

    who: str
    speed: str
    tied: bool
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelsCell:
    """The best kernels of a task, and how many more are tied with them."""

    form: ClassVar[str] = "kernels"
    kernels: Sequence[ListedKernel]
    more: int
    value: str
    part: str | None = None


Cell = TextCell | CountCell | NumberCell | ShareCell | FactorCell | StripCell | KernelsCell


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; its label is also what a phone shows beside each value."""

    label: str
    number: bool
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row with its heading; the script recounts it by the number `group`."""

    head: str
    cells: Sequence[Cell]
    group: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table; the script recounts `filtered` ones when a filter is set."""

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[TableRow]
    filtered: bool


def column(label: str, *, number: bool = True, hint: str = "") -> Column:
    """Make a column, of numbers unless said otherwise."""
    return Column(label=label, number=number, hint=hint)


def table(
    name: str,
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[TableRow],
    *,
    filtered: bool = False,
) -> PageTable:
    """Make a table; its name becomes one that HTML takes as an id."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return PageTable(name=plain, caption=caption, columns=columns, rows=rows, filtered=filtered)


def row(head: str, cells: Sequence[Cell], *, group: int | None = None) -> TableRow:
    """Make a row."""
    return TableRow(head=head, cells=cells, group=group)


def text(words: str, *, value: float | None = None) -> TextCell:
    """Show words; sort by a number where one is given, else by the words."""
    return TextCell(text=words, value=words.lower() if value is None else value)


def whole(value: int, *, part: str | None = None) -> CountCell:
    """Show a count."""
    return CountCell(text=count(value), value=value, part=part)


def number(value: float | None, said: str | None = None) -> NumberCell:
    """Show a measured number, as it is said elsewhere or with three figures."""
    shown = DASH if value is None else said if said is not None else figures(value)
    return NumberCell(text=shown, value=value)


def share(rate: RateRecord, *, part: str | None = None, unknown: str = DASH) -> ShareCell:
    """Show a rate with its counts; `unknown` where it has no share."""
    return ShareCell(
        text=unknown if rate.rate is None and rate.denominator else percent(rate.rate),
        counts=share_said(rate),
        interval=share_interval(rate),
        fill=_percent(rate.rate),
        low=_percent(rate.low),
        high=_percent(rate.high),
        value=rate.rate,
        part=part,
    )


def share_estimate(estimate: EstimateRecord, *, counts: str) -> ShareCell:
    """Show a mean share."""
    return ShareCell(
        text=percent(estimate.value),
        counts=counts,
        interval=share_interval(estimate),
        fill=_percent(estimate.value),
        low=_percent(estimate.low),
        high=_percent(estimate.high),
        value=estimate.value,
    )


def factor(estimate: EstimateRecord, *, counts: str = "") -> FactorCell:
    """Show a speedup."""
    return FactorCell(
        text=times(estimate.value),
        counts=counts,
        interval=times_interval(estimate),
        value=estimate.value,
    )


def correlation(found: CorrelationRecord) -> list[Cell]:
    """Show a rank correlation, and its interval in a cell of its own."""
    if found.value is None or found.low is None or found.high is None:
        return [number(found.value), text(DASH)]
    return [
        number(found.value, f"{found.value:+.2f}"),
        text(between(f"{found.low:+.2f}", f"{found.high:+.2f}")),
    ]


def _percent(share_: float | None) -> float | None:
    return None if share_ is None else round(100 * share_, 2)
