"""Intervals for shares and means of answers, with tasks as clusters. Pure.

Tasks, not answers, are the sample: ten answers to one task say less than one answer to each of ten.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy import special

from kerneltruth.documents.estimates import EstimateRecord, RateRecord

CONFIDENCE = 0.95

Floats = NDArray[np.float64]


def rate(numerator: int, denominator: int) -> RateRecord:
    """Return a share of independent trials, with Wilson's score interval."""
    low, high = wilson(numerator, denominator)
    share = numerator / denominator if denominator else None
    return RateRecord(numerator=numerator, denominator=denominator, rate=share, low=low, high=high)


def unknown_rate(denominator: int) -> RateRecord:
    """Return the rate of a stage that was not tried: counts without a share."""
    return RateRecord(numerator=0, denominator=denominator, rate=None, low=None, high=None)


def clustered_rate(hits: Iterable[tuple[Hashable, bool]]) -> RateRecord:
    """Return a share of trials in clusters, such as the tasks of answers.

    The interval is Wilson's with the effective number of trials. That is the number of trials if
    each cluster has one, and the number of clusters if the trials of a cluster are all equal. With
    a single cluster the interval is about that cluster alone.
    """
    counts: dict[Hashable, list[int]] = defaultdict(lambda: [0, 0])
    for cluster, hit in hits:
        count = counts[cluster]
        count[0] += hit
        count[1] += 1
    return rate_of_counts(list(counts.values()))


def counted(clusters: Sequence[Hashable]) -> Callable[[NDArray[np.bool_]], RateRecord]:
    """Return `clustered_rate` of hits that are in the order of these clusters.

    It serves where many shares are of the same trials.
    """
    numbers = {cluster: i for i, cluster in enumerate(dict.fromkeys(clusters))}
    of = np.fromiter((numbers[cluster] for cluster in clusters), int, len(clusters))
    trials = np.bincount(of, minlength=len(numbers)).tolist()

    def share(hits: NDArray[np.bool_]) -> RateRecord:
        right = np.bincount(of[hits], minlength=len(numbers)).tolist()
        return rate_of_counts(list(zip(right, trials, strict=True)))

    return share


def rate_of_counts(counts: Sequence[Sequence[int]]) -> RateRecord:
    """Return `clustered_rate` from the hits and trials of each cluster."""
    right, total = sum(c[0] for c in counts), sum(c[1] for c in counts)
    if total == len(counts) or len(counts) < 2:
        return rate(right, total)
    table = np.asarray(counts, float)
    size = min(float(total), effective_size(table[:, 0], table[:, 1]))
    low, high = _around(right / total, size)
    return RateRecord(numerator=right, denominator=total, rate=right / total, low=low, high=high)


def wilson(
    successes: int, trials: int, *, confidence: float = CONFIDENCE
) -> tuple[float | None, float | None]:
    """Return Wilson's score interval of a probability; (None, None) without a trial.

    Unlike the normal interval it stays within [0, 1], has a width at 0 and 1, and holds the share.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"need 0 <= successes <= trials, got {successes} of {trials}")
    return _around(successes / trials, trials, confidence) if trials else (None, None)


# SciPy's binomtest takes 258 us where this takes 1, and refuses fractions of trials.
def _around(share: float, trials: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return Wilson's interval; `trials` need not be a whole number."""
    z = _normal(confidence)
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    # Rounding leaves 1e-17 beyond the ends, which are exactly 0 and 1.
    low = 0.0 if share == 0 else min(max(centre - half, 0.0), share)
    high = 1.0 if share == 1 else max(min(centre + half, 1.0), share)
    return low, high


def effective_size(above: Floats, below: Floats) -> float:
    """Return the effective number of trials behind `above.sum() / below.sum()`.

    It is p (1 - p) over the variance between clusters (Korn and Graubard, 1998). The shares of few
    clusters are often equal, and their variance 0. Both are therefore computed with z^2 clusters
    added, half of them all right and half all wrong, as in Wilson's interval; z^2 is subtracted
    from the result. If each cluster is one trial, the result is exactly their number.
    """
    squared = _normal(CONFIDENCE) ** 2
    # Weighted by size: one cluster of a hundred trials outweighs those of one trial.
    size = float(below @ below / below.sum())
    trials = float(below.sum()) + size * squared
    share = (float(above.sum()) + size * squared / 2) / trials
    apart = above - share * below
    added = squared / 2 * size**2 * (share**2 + (1 - share) ** 2)
    return share * (1 - share) * trials**2 / (float(apart @ apart) + added) - squared


def mean_share(shares: Sequence[float]) -> EstimateRecord:
    """Return the mean of one share per cluster, with an interval within [0, 1]."""
    count = len(shares)
    value = math.fsum(shares) / count if count else None
    low = high = None
    if value is not None and count > 1:
        size = effective_size(np.asarray(shares, float), np.ones(count))
        # Rounding may leave a mean of ones a hair above 1.
        value = min(1.0, max(0.0, value))
        low, high = _around(value, size)
    return EstimateRecord(value=value, low=low, high=high, count=count, clusters=count)


def mean_by_cluster(values: Sequence[float], clusters: Sequence[Hashable]) -> EstimateRecord:
    """Return the mean of all values, with Student's interval over their clusters."""
    sums: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        found = sums.setdefault(cluster, [0.0, 0.0])
        found[0] += value
        found[1] += 1
    table = np.asarray(list(sums.values()), float).reshape(-1, 2)
    return mean_of_sums(table[:, 0], table[:, 1])


def mean_of_sums(above: Floats, below: Floats) -> EstimateRecord:
    """Return `mean_by_cluster` from the sum and the number of each cluster's values."""
    clusters, count = len(below), int(below.sum())
    value = float(above.sum()) / count if count else None
    low = high = None
    if value is not None and clusters > 1:
        error = standard_error(influence(above, below))
        # Equal values leave nothing but rounding.
        if error > 1e-12 * max(1.0, abs(value)):
            half = student(clusters - 1) * error
            low, high = value - half, value + half
    return EstimateRecord(value=value, low=low, high=high, count=count, clusters=clusters)


def influence(above: Floats, below: Floats) -> Floats:
    """Return the influence of each cluster on `above.sum() / below.sum()`."""
    return np.asarray((above - above.sum() / below.sum() * below) / below.sum())


def standard_error(influences: Floats) -> float:
    """Return the standard error of a sum of independent influences."""
    count = len(influences)
    return math.sqrt(count / (count - 1) * float(influences @ influences))


def geometric_mean(values: Sequence[float], clusters: Sequence[Hashable]) -> EstimateRecord:
    """Return the geometric mean of positive values: `mean_by_cluster` of their logs."""
    found = mean_by_cluster([math.log(v) for v in values], clusters)
    value, low, high = (
        None if x is None else math.exp(x) for x in (found.value, found.low, found.high)
    )
    return EstimateRecord(
        value=value, low=low, high=high, count=found.count, clusters=found.clusters
    )


def student(df: int, *, confidence: float = CONFIDENCE) -> float:
    """Return the quantile of Student's t that bounds the central `confidence`."""
    return float(special.stdtrit(df, (1 + confidence) / 2))


def _normal(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
