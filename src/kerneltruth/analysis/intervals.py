"""Intervals: Wilson's for a rate, and bootstraps that resample clusters, such as tasks.

Pure: every random number comes from a seed that is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 2000
# Resamples whose weights are held at once; each takes a double per cluster.
_AT_ONCE = 250
# Clusters up to which draws are kept for the next interval.
_MOST_KEPT = 500

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share with its numerator and denominator, and Wilson's interval; None of nothing."""

    numerator: int
    denominator: int
    rate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its interval, and how many values and clusters it rests on.

    Attributes:
        value: None where there is nothing to estimate from.
        low: None as `value`, and where one cluster alone cannot say how much clusters differ.
    """

    value: float | None
    low: float | None
    high: float | None
    count: int
    clusters: int


def rate(numerator: int, denominator: int, *, confidence: float = CONFIDENCE) -> Rate:
    """A share with Wilson's score interval."""
    low, high = wilson(numerator, denominator, confidence=confidence)
    share = numerator / denominator if denominator else None
    return Rate(numerator=numerator, denominator=denominator, rate=share, low=low, high=high)


def wilson(
    successes: int, trials: int, *, confidence: float = CONFIDENCE
) -> tuple[float | None, float | None]:
    """Wilson's score interval of a probability; (None, None) of no trial.

    Unlike the normal one it stays within [0, 1] and has a width at 0 and at all.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"need 0 <= successes <= trials, got {successes} of {trials}")
    if trials == 0:
        return None, None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / trials
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    # Exactly 0 and 1 at the ends, where rounding would leave some 1e-17.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == trials else centre + half
    return low, high


def cluster_ratio(
    numerators: Sequence[float],
    denominators: Sequence[float],
    *,
    seed: int,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> tuple[float | None, float | None]:
    """Percentile bootstrap of sum(numerators) / sum(denominators) over clusters.

    A cluster, such as a task, is drawn with all that belongs to it. Resamples whose denominator is
    0 are left out. (None, None) of fewer than two clusters that count.
    """
    above, below = np.asarray(numerators, float), np.asarray(denominators, float)
    counting = below != 0
    above, below = above[counting], below[counting]
    if len(below) < 2:
        return None, None
    values = np.concatenate(
        [(w @ above) / np.maximum(w @ below, 1e-300) for w in weights(len(below), seed, resamples)]
    )
    return percentiles(values, confidence)


def percentiles(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The central part of a distribution that holds `confidence` of it."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def mean_by_cluster(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    seed: int,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> Estimate:
    """The mean of all values, with a bootstrap interval that resamples the clusters."""
    sums: dict[Hashable, float] = {}
    counts: dict[Hashable, int] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value
        counts[cluster] = counts.get(cluster, 0) + 1
    low, high = cluster_ratio(
        list(sums.values()),
        [float(c) for c in counts.values()],
        seed=seed,
        confidence=confidence,
        resamples=resamples,
    )
    mean = sum(sums.values()) / len(values) if values else None
    return Estimate(value=mean, low=low, high=high, count=len(values), clusters=len(sums))


def geometric_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    seed: int,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> Estimate:
    """The geometric mean of positive values, with an interval as in `mean_by_cluster`."""
    logs = [math.log(v) for v in values]
    found = mean_by_cluster(logs, clusters, seed=seed, confidence=confidence, resamples=resamples)
    value, low, high = (None if x is None else math.exp(x) for x in _ends(found))
    return Estimate(value=value, low=low, high=high, count=found.count, clusters=found.clusters)


def _ends(found: Estimate) -> tuple[float | None, float | None, float | None]:
    return found.value, found.low, found.high


def bootstrap(
    size: int,
    statistic: Callable[[Floats], float | None],
    *,
    seed: int,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> tuple[float | None, float | None]:
    """Percentile bootstrap of any statistic of `size` clusters.

    Args:
        size: how many clusters there are.
        statistic: of how often each cluster was drawn; None where that has no value, which leaves
            the resample out.
        seed: of the resampling.
        confidence: of the interval.
        resamples: how many.
    """
    if size < 2:
        return None, None
    drawn = (row for block in weights(size, seed, resamples) for row in block)
    values = [v for v in map(statistic, drawn) if v is not None and math.isfinite(v)]
    return percentiles(np.asarray(values), confidence) if values else (None, None)


def weights(size: int, seed: int, resamples: int) -> Iterable[Floats]:
    """How often each of `size` clusters is drawn, a row per resample, in blocks."""
    return _kept(size, seed, resamples) if size <= _MOST_KEPT else _drawn(size, seed, resamples)


@lru_cache(maxsize=16)
def _kept(size: int, seed: int, resamples: int) -> tuple[Floats, ...]:
    """The same draws serve all groups of as many clusters."""
    return tuple(_drawn(size, seed, resamples))


def _drawn(size: int, seed: int, resamples: int) -> Iterator[Floats]:
    rng = np.random.default_rng(seed)
    shares = np.full(size, 1 / size)
    for start in range(0, resamples, _AT_ONCE):
        count = min(_AT_ONCE, resamples - start)
        yield rng.multinomial(size, shares, size=count).astype(np.float64)
