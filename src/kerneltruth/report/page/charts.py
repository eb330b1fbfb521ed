"""Charts of lines, drawn by a template from places in percent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kerneltruth.documents.estimates import EstimateRecord, RateRecord
from kerneltruth.report.page.scales import AxisTick
from kerneltruth.report.page.wording import percent, share_interval, share_said

# As many lines of a chart as colours and dashes tell apart.
MOST_LINES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPoint:
    """A point and its interval, in percent from the upper left of the chart, and both in words."""

    x: float
    y: float | None
    low: float | None
    high: float | None
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """A line's points, and the class by which it is styled."""

    label: str
    kind: str
    points: Sequence[ChartPoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepChart:
    """Shares step by step, such as by round, and perhaps speedups below.

    `places` are those of the steps on the axis, with their names; `ticks` are of the speedups.
    """

    name: str
    places: Sequence[tuple[float, str]]
    shares: Sequence[ChartLine]
    speeds: Sequence[ChartLine] = ()
    ticks: Sequence[AxisTick] = ()
    said: str


def rate_point(x: float, rate: RateRecord, what: str) -> ChartPoint:
    """Return the place of a share and its interval; `what` says of which step."""
    estimate = EstimateRecord(
        value=rate.rate, low=rate.low, high=rate.high, count=rate.denominator, clusters=0
    )
    return share_point(x, estimate, f"{what}: {share_said(rate)},")


def share_point(x: float, share: EstimateRecord, what: str) -> ChartPoint:
    """Return the place of a share, which `what` names, and its interval."""
    y, low, high = (
        None if end is None else round(100 - 100 * end, 2)
        for end in (share.value, share.low, share.high)
    )
    interval = share_interval(share)
    said = f"{what} {percent(share.value)}{f' ({interval})' if interval else ''}"
    return ChartPoint(x=x, y=y, low=low, high=high, said=said)
