"""Places on a chart, in percent of its width. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kerneltruth.report.page.wording import TIMES

# Speedups beyond these stand at the edge: one kernel must not squeeze all others together.
MOST = 64.0
BINS = 48
MOST_DOTS = 60
_TICKS = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 16.0, 64.0)
_NEAR_TICKS = (1 / 4, 1 / 2, 3 / 4, 1.0, 1.5, 2.0, 3.0, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisTick:
    """A place on an axis with its name; `one` marks the place of 1x."""

    at: float
    label: str
    one: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramBar:
    """Place, width and height of a bar, in percent."""

    at: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScale:
    """Factors on an axis of logarithms, from `low` to `high`, both positive."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high:
            raise ValueError(f"need 0 < low < high, got {self.low} and {self.high}")

    def at(self, value: float) -> float:
        """Percent of the way, kept within the axis."""
        bounded = min(max(value, self.low), self.high)
        share = math.log(bounded / self.low) / math.log(self.high / self.low)
        return round(100 * share, 2)

    def ticks(self, *, apart: float = 0.0) -> list[AxisTick]:
        """Return the places of round factors, with their names.

        A name takes `apart` percent of the way. Where there is less room for it, beside the name of
        1 or others or at the ends, it is left out.
        """
        candidates = _NEAR_TICKS if self.high / self.low <= 20 else _TICKS
        found = [value for value in candidates if self.low <= value <= self.high]
        named: list[float] = []
        for value in sorted(found, key=lambda v: v != 1.0):
            at = self.at(value)
            inside = apart / 2 <= at <= 100 - apart / 2
            if inside and all(abs(at - self.at(other)) >= apart for other in named):
                named.append(value)
        return [
            AxisTick(
                at=self.at(value),
                label=f"{value:.4g}{TIMES}" if value in named else "",
                one=value == 1.0,
            )
            for value in found
        ]


def speed_scale(factors: Iterable[float]) -> LogScale:
    """Return a scale that shows all factors, and 1 with some room on both sides."""
    bounded = [min(max(f, 1 / MOST), MOST) for f in factors]
    low, high = min([*bounded, 0.8]), max([*bounded, 1.25])
    return LogScale(low=low / 1.08, high=high * 1.08)


def dots(factors: Sequence[float], scale: LogScale) -> list[float]:
    """Return the place of each factor, if they are few enough to be told apart."""
    return sorted(scale.at(f) for f in factors) if len(factors) <= MOST_DOTS else []


def bars(factors: Sequence[float], scale: LogScale) -> list[HistogramBar]:
    """Return a histogram of many factors."""
    if len(factors) <= MOST_DOTS:
        return []
    counts = [0] * BINS
    for factor in factors:
        counts[min(BINS - 1, int(scale.at(factor) / 100 * BINS))] += 1
    width, top = 100 / BINS, max(counts)
    return [
        HistogramBar(at=round(i * width, 2), width=round(width, 2), height=round(100 * n / top, 1))
        for i, n in enumerate(counts)
        if n
    ]
