"""Tables as data: columns, rows, and what each cell shows and sorts by. Pure.

One template draws every table of the page from this form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

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
class ValueCell:
    """Words or a figure; a share is drawn as a bar, with `fill` and ends in percent.

    Attributes:
        value: what the column sorts by; likewise in the other cells.
        part: the name by which the script counts the cell again; likewise in the others.
    """

    form: Literal["text", "count", "number", "share", "factor"]
    text: str
    value: str | float | None
    part: str | None = None
    counts: str = ""
    interval: str = ""
    fill: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StripCell:
    """Speedups on an axis: dots or a histogram, and their mean with its interval.

    `named` are the ticks with names, for a phone, which shows no axis above a column.
    """

    form: ClassVar[str] = "strip"
    dots: Sequence[float]
    bars: Sequence[HistogramBar]
    ticks: Sequence[AxisTick]
    named: Sequence[AxisTick]
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
    value: str | float
    part: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPart:
    """A part of a stack: its place and width in percent, its class, its mark, and it in words."""

    at: float
    width: float
    shade: str
    mark: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StackCell:
    """Parts of a whole side by side."""

    form: ClassVar[str] = "stack"
    parts: Sequence[StackPart]
    value: float
    part: str | None = None


Cell = ValueCell | StripCell | KernelsCell | StackCell


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


def text(words: str, *, value: float | None = None) -> ValueCell:
    """Show words; sort by a number where one is given, else by the words."""
    return ValueCell(form="text", text=words, value=words.lower() if value is None else value)


def whole(value: int, *, part: str | None = None) -> ValueCell:
    """Show a count."""
    return ValueCell(form="count", text=count(value), value=value, part=part)


def number(value: float | None, said: Callable[[float], str] = figures) -> ValueCell:
    """Show a measured number, or a dash where there is none."""
    return ValueCell(form="number", text=DASH if value is None else said(value), value=value)


def share(rate: RateRecord, *, part: str | None = None, unknown: str = DASH) -> ValueCell:
    """Show a rate with its counts; `unknown` alone where it was not tried."""
    untried = rate.rate is None and rate.denominator
    said = unknown if untried else percent(rate.rate)
    # A count of 0 beside what was not tried would look measured.
    counts = "" if untried else share_said(rate)
    return _bar(rate, rate.rate, text=said, counts=counts, part=part)


def share_estimate(mean: EstimateRecord, *, counts: str) -> ValueCell:
    """Show a mean share."""
    return _bar(mean, mean.value, text=percent(mean.value), counts=counts)


def _bar(
    ends: RateRecord | EstimateRecord,
    value: float | None,
    *,
    text: str,
    counts: str,
    part: str | None = None,
) -> ValueCell:
    fill, low, high = (
        None if x is None else round(100 * x, 2) for x in (value, ends.low, ends.high)
    )
    return ValueCell(
        form="share",
        text=text,
        value=value,
        part=part,
        counts=counts,
        interval=share_interval(ends),
        fill=fill,
        low=low,
        high=high,
    )


def factor(mean: EstimateRecord, *, counts: str = "") -> ValueCell:
    """Show a speedup."""
    said, ends = times(mean.value), times_interval(mean)
    return ValueCell(form="factor", text=said, value=mean.value, counts=counts, interval=ends)


def correlation(found: CorrelationRecord) -> list[Cell]:
    """Show a rank correlation, and its interval in a cell of its own."""
    if found.value is None or found.low is None or found.high is None:
        return [number(found.value), text(DASH)]
    ends = between(f"{found.low:+.2f}", f"{found.high:+.2f}")
    return [number(found.value, "{:+.2f}".format), text(ends)]
