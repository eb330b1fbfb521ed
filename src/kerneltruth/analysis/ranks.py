"""Rank correlation with an interval. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltruth.analysis.intervals import CONFIDENCE, percentiles

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
    draws = np.random.default_rng(seed).integers(0, count, size=(resamples, count))
    found = [v for row in draws if (v := spearman(a[row], b[row])) is not None]
    low, high = percentiles(np.asarray(found), confidence) if found else (None, None)
    return Correlation(value=value, low=low, high=high, pairs=count)


def spearman(x: Floats, y: Floats) -> float | None:
    """The correlation of the ranks, or None where one side is constant."""
    a, b = mean_ranks(x), mean_ranks(y)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else None


def mean_ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)
