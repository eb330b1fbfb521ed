"""From paired times to a ratio with its interval, and to `faster`, `tie` or `slower`.

Ratios are baseline time over candidate time: above 1 the candidate is faster. Times are in seconds.
Within a block, candidate and baseline are exchanged as A B B A, so that a linear drift of clocks or
temperature adds the same to both sides and cancels. What is left of a block is one number, the log
of its ratio; blocks are the units of every interval here.

The location is the Hodges-Lehmann estimate, the median of the averages of all pairs of blocks: at
normal noise it needs 1.05 times the blocks that a mean needs, where a median needs 1.57 times as
many, and 29% of the blocks may be arbitrarily disturbed. Its interval inverts Wilcoxon's signed-
rank test, whose null distribution comes from all 2**n exchanges of the two sides of a block.
Swapping candidate and baseline in a null pair changes nothing but a sign, so the coverage is exact
there, from 6 blocks up and whatever the noise, where resampling blocks with replacement (the
bootstrap) covers 92% at 8 blocks where it claims 95%.
`tests/unit/clock/statistics/test_coverage.py` simulates both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median
from typing import Literal

import numpy as np

from kerneltruth.clock.statistics.quantiles import (
    median_place,
    normal,
    signed_rank_place,
    student_t,
)
from kerneltruth.errors import InternalError

Outcome = Literal["faster", "tie", "slower"]

LEVEL = 0.95
MINIMUM_EFFECT = 0.01
# A tie says that two kernels are equally fast only as far as its interval reaches.
WIDEST = 0.02
LEAST_BLOCKS = 8

# Stopping once the interval is narrow tends to stop when the noise happens to look small; such
# intervals cover up to 2.5 points less than they claim. So the interval uses this share of the
# claimed error: 1/32 instead of 1/20, which 6 blocks can just reach.
SPENT = 0.625

# Half-width of the difference between processes, over the standard deviation of a pair's blocks.
SCATTER = 0.5

# Share of a back-to-back call, and seconds, by which a device time may lie below the slope.
TOLERANCE = 0.1
TOLERANCE_S = 1e-6
# A call on cold caches takes no more than this many back-to-back ones, and this much longer.
COLD_FACTOR = 5.0
COLD_S = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Interleaved exchanges: per-call seconds of each side, in the order of measurement.

    The i-th values of both sides were taken next to each other; two such pairs, A B and B A, are
    one exchange.
    """

    candidate_s: tuple[float, ...]
    baseline_s: tuple[float, ...]
    # Log of baseline over candidate: the median over exchanges of their mean.
    log_ratio: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.candidate_s or len(self.candidate_s) != len(self.baseline_s):
            raise InternalError(f"a block has as many times on either side, one or more: {self}")
        if not all(0 < t < math.inf for t in (*self.candidate_s, *self.baseline_s)):
            raise InternalError(f"a block's times are finite and above 0: {self}")
        logs = [math.log(b / c) for b, c in zip(self.baseline_s, self.candidate_s, strict=True)]
        if len(logs) % 2 == 0:
            logs = [(one + other) / 2 for one, other in zip(logs[::2], logs[1::2], strict=True)]
        object.__setattr__(self, "log_ratio", median(logs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate and where the truth lies with probability `level`; all are above 0."""

    estimate: float
    low: float
    high: float
    level: float = LEVEL

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.estimate <= self.high or not 0 < self.level < 1:
            raise InternalError(f"need 0 <= low <= estimate <= high and 0 < level < 1: {self}")

    @property
    def half_width(self) -> float:
        """Half the interval's width in logs: 0.005 is about plus or minus 0.5%."""
        if self.low == 0 or self.high == math.inf:
            return math.inf
        return (math.log(self.high) - math.log(self.low)) / 2

    def widened(self, half_width: float) -> Interval:
        """Return the interval with a further, independent error of that half-width, in logs."""
        if half_width < 0:
            raise InternalError(f"a half-width of {half_width}")
        if half_width == 0 or self.half_width == math.inf:
            return self
        down, up = math.log(self.estimate / self.low), math.log(self.high / self.estimate)
        return Interval(
            estimate=self.estimate,
            low=self.estimate * math.exp(-math.hypot(down, half_width)),
            high=self.estimate * math.exp(math.hypot(up, half_width)),
            level=self.level,
        )


def ratio_interval(
    blocks: Sequence[Block], *, level: float = LEVEL, noise_floor: float | None = None
) -> Interval:
    """Baseline time over candidate time, from one or more blocks.

    Safe for blocks whose number was decided by `enough`. Below 6 blocks (at 95%) no exact interval
    exists, and one of normal theory is given; from one block alone it reaches from 0 to infinity.

    Without a noise floor (see `between_processes`) the ratio holds for these processes only.
    """
    if not blocks:
        raise InternalError("no blocks to take a ratio of")
    logs = np.array([block.log_ratio for block in blocks])
    bare = _of_logs(logs, level=level, alpha=SPENT * (1 - level))
    if noise_floor is None:
        return bare
    return between_processes(bare, len(blocks), noise_floor=noise_floor)


def between_processes(bare: Interval, blocks: int, *, noise_floor: float) -> Interval:
    """Return the interval of a ratio of kernels, from that of two of their processes.

    Copies of a kernel in different processes differ by more than the batches of each show, perhaps
    since their memory lies elsewhere. They differ the more, the more their blocks scatter. On three
    H100 (`benchmarks/clock_null.py`), 94% to 99.5% of 648 null pairs contain 1, by card, with a
    noise floor of 0.3% alone, and 98.1% to 100% with `SCATTER` of the blocks' standard deviation;
    among 648 others, which did not enter the choice, 95.4% to 98.6% do.

    The noise floor is the half-width, in logs, of what differs between processes whatever the
    scatter.
    """
    if bare.half_width == math.inf:
        return bare
    reach = normal(1 - SPENT * (1 - bare.level) / 2)
    scatter = bare.half_width * math.sqrt(blocks) / reach
    return bare.widened(math.hypot(noise_floor, SCATTER * scatter))


def _of_logs(logs: np.ndarray, *, level: float, alpha: float) -> Interval:
    """Hodges-Lehmann estimate and signed-rank interval, taken out of the logs."""
    n = len(logs)
    first, second = _pairs(n)
    averages = np.sort((logs[first] + logs[second]) / 2)
    centre = float(averages[len(averages) // 2] + averages[(len(averages) - 1) // 2]) / 2
    k = signed_rank_place(n, alpha)
    if k:
        low, high = float(averages[k - 1]), float(averages[-k])
    else:
        half = _normal_half_width(logs, alpha)
        low, high = centre - half, centre + half
    return Interval(estimate=math.exp(centre), low=math.exp(low), high=math.exp(high), level=level)


@lru_cache(maxsize=128)
def _pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of all pairs of n values, each with itself too."""
    return np.triu_indices(n)


def _normal_half_width(logs: np.ndarray, alpha: float) -> float:
    n = len(logs)
    if n < 2:
        return math.inf
    return student_t(alpha, n - 1) * float(logs.std(ddof=1)) / math.sqrt(n)


def enough(
    blocks: Sequence[Block], *, precision: float, least: int = LEAST_BLOCKS, level: float = LEVEL
) -> bool:
    """Return whether the ratio is known to plus or minus `precision`, a share such as 0.003.

    It may be asked after every block: `ratio_interval` pays for that (see `SPENT`). Only the width
    decides, never the estimate, so that measuring cannot continue until the ratio looks good.
    """
    if least < 2 or not precision > 0:
        raise InternalError(f"need least >= 2 and precision > 0, got {least} and {precision}")
    return len(blocks) >= least and ratio_interval(blocks, level=level).half_width <= precision


def outcome(interval: Interval, *, minimum: float = MINIMUM_EFFECT) -> Outcome:
    """Return the outcome that a ratio's interval supports.

    `faster`: the whole interval lies above 1 + minimum. `slower`: it lies below 1 / (1 + minimum).
    `tie`: neither, so that no difference of more than the minimum is shown.

    A true difference of the minimum or less is thus called one in at most (1 - level) / 2 of the
    measurements, and one of 2% in over 97% of them where the half-width is 0.5% or less.
    """
    if interval.low > 1 + minimum:
        return "faster"
    if interval.high < 1 / (1 + minimum):
        return "slower"
    return "tie"


def is_wide(low: float, high: float) -> bool:
    """Return whether a ratio's interval leaves a difference of more than `WIDEST` open."""
    return low < 1 - WIDEST or high > 1 + WIDEST


def time_interval(seconds: Sequence[float]) -> Interval:
    """Median of one side's per-call seconds, between two order statistics.

    Exact for independent times of any distribution. Drift makes it too narrow: it says how the
    samples scatter, while the ratio to a baseline measured beside them is what can be compared.
    """
    times = np.sort(np.array(seconds, dtype=float))
    if not len(times) or not (times[0] > 0 and times[-1] < math.inf):
        raise InternalError(f"times are finite and above 0, got {list(seconds)[:5]}")
    centre = float(np.median(times))
    k = median_place(len(times), 1 - LEVEL)
    if k:
        return Interval(estimate=centre, low=float(times[k - 1]), high=float(times[-k]))
    factor = math.exp(_normal_half_width(np.log(times), 1 - LEVEL))
    return Interval(estimate=centre, low=centre / factor, high=centre * factor)


def noise_floor(null: Sequence[Interval]) -> float:
    """Half-width, in logs, by which intervals of a kernel against itself must be widened.

    From 19 null pairs up (at 95%) it is distribution-free: the smallest half-width that, added in
    quadrature, lets the share (n + 1) * LEVEL / n of them contain 1, so that the interval of a
    further null pair contains it with probability `LEVEL` (split-conformal prediction). With
    fewer, Student's t times the root mean square of the estimates' logs, which is larger.
    """
    if not null:
        raise InternalError("no null pairs to take a noise floor of")
    n = len(null)
    logs = np.array([math.log(i.estimate) for i in null])
    rank = math.ceil((n + 1) * LEVEL)
    if rank > n:
        return student_t(1 - LEVEL, n) * math.sqrt(float(np.mean(logs**2)))
    return sorted(_missing(i) for i in null)[rank - 1]


def _missing(interval: Interval) -> float:
    """Return the half-width that an interval lacks in quadrature to contain 1."""
    if interval.low <= 1 <= interval.high:
        return 0.0
    towards = interval.low if interval.low > 1 else interval.high
    own = abs(math.log(interval.estimate / towards))
    return math.sqrt(max(math.log(interval.estimate) ** 2 - own**2, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """Seconds per call as the judge's own clock sees them over many calls.

    Attributes:
        per_call_s: the slope of wall seconds over calls.
    """

    per_call_s: float
    low: float
    high: float


def slope(counts: Sequence[int], seconds: Sequence[float]) -> Slope:
    """Theil-Sen line through wall seconds over numbers of calls.

    The slope is the median of the slopes of all pairs of points, so that up to 29% of the batches
    may be disturbed; its interval lies between two of them, by the normal approximation of
    Kendall's statistic (Sen, 1968, equation 2.6, with its correction for equal counts).
    """
    x, y = np.array(counts, dtype=float), np.array(seconds, dtype=float)
    if len(x) != len(y) or len(set(counts)) < 2:
        raise InternalError(f"need a time for each of two or more different counts: {counts}")
    first, second = np.triu_indices(len(x), 1)
    apart = x[second] != x[first]
    first, second = first[apart], second[apart]
    slopes = np.sort((y[second] - y[first]) / (x[second] - x[first]))
    n = len(x)
    equal = np.array([list(counts).count(c) for c in set(counts)])
    variance = n * (n - 1) * (2 * n + 5) - float(np.sum(equal * (equal - 1) * (2 * equal + 5)))
    reach = normal((1 + LEVEL) / 2) * math.sqrt(variance / 18)
    # Below, a place before the first slope means that there are too few for the level.
    k = math.floor((len(slopes) - reach) / 2)
    per_call = float(np.median(slopes))
    return Slope(
        per_call_s=per_call,
        low=float(slopes[k - 1]) if k > 0 else -math.inf,
        high=float(slopes[-k]) if k > 0 else math.inf,
    )


def agree(events_s: float, slope: Slope) -> bool:
    """Return whether a claimed device time can be that of calls the judge has timed.

    A claim agrees if it reaches the slope's lower end, with a tenth and 1 us on top. One above the
    slope is that of cold caches, and agrees up to 5 times the slope and 10 us: beyond, most calls
    have not done the work that a single one does.
    """
    longest = events_s * (1 + TOLERANCE) + TOLERANCE_S
    return slope.low <= longest and events_s <= COLD_FACTOR * slope.high + COLD_S
