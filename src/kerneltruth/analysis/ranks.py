"""Rank correlation with an interval. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltruth.analysis.intervals import CONFIDENCE, percentiles, weights

Floats = NDArray[np.float64]

RESAMPLES = 1000
LEAST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Spearman's rank correlation of pairs, with a bootstrap interval that resamples pairs.

    Attributes:
        value: None where one side has no spread, or there are fewer than four pairs.
    """

    value: float | None
    low: float | None
    high: float | None
    pairs: int


def rank_correlation(
    x: Sequence[float],
    y: Sequence[float],
    *,
    seed: int,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> Correlation:
    """Spearman's rank correlation; ties share their mean rank."""
    a, b = np.asarray(x, float), np.asarray(y, float)
    count = len(a)
    value = spearman(a, b) if count >= LEAST else None
    if value is None:
        return Correlation(value=None, low=None, high=None, pairs=count)
    drawn = np.concatenate([_correlations(a, b, w) for w in weights(count, seed, resamples)])
    found = drawn[np.isfinite(drawn)]
    low, high = percentiles(found, confidence) if len(found) else (None, None)
    return Correlation(value=value, low=low, high=high, pairs=count)


def spearman(x: Floats, y: Floats) -> float | None:
    """The correlation of the ranks, or None where one side is constant."""
    a, b = mean_ranks(x), mean_ranks(y)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else None


def _correlations(x: Floats, y: Floats, drawn: Floats) -> Floats:
    """Of many resamples at once, given how often each draws each pair; NaN where it has none."""
    a, b = _ranks_within(x, drawn), _ranks_within(y, drawn)
    size = drawn.sum(1, keepdims=True)
    a = a - (drawn * a).sum(1, keepdims=True) / size
    b = b - (drawn * b).sum(1, keepdims=True) / size
    spread = (drawn * a * a).sum(1) * (drawn * b * b).sum(1)
    return np.asarray((drawn * a * b).sum(1) / np.sqrt(np.where(spread > 0, spread, np.nan)))


def _ranks_within(values: Floats, drawn: Floats) -> Floats:
    """Mean ranks of all values within each resample: those below, and half of the equal ones."""
    order = np.argsort(values, kind="stable")
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    starts = np.searchsorted(values[order], values[first])
    counts = np.add.reduceat(drawn[:, order], starts, axis=1)
    ranks = np.cumsum(counts, axis=1) - (counts - 1) / 2
    return np.asarray(ranks[:, inverse])


def mean_ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)
