"""Rank correlation with an interval, such as that of complexity with failure. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kerneltruth.analysis.groups import by_task
from kerneltruth.analysis.intervals import CONFIDENCE
from kerneltruth.analysis.results import Result
from kerneltruth.documents.effects import ComplexityRecord
from kerneltruth.documents.estimates import CorrelationRecord
from kerneltruth.documents.facts import REFERENCE_NUMBERS

Floats = NDArray[np.float64]

LEAST = 4


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> CorrelationRecord:
    """Return Spearman's rank correlation; ties share their mean rank.

    The interval is Fisher's with the standard error of Bonett and Wright (2000).
    """
    a, b = np.asarray(x, float), np.asarray(y, float)
    count = len(a)
    value = spearman(a, b) if count >= LEAST else None
    if value is None:
        return CorrelationRecord(value=None, low=None, high=None, pairs=count)
    # A perfect order is taken for one with two neighbours swapped, of which Fisher's scale has a
    # value: of few pairs even a perfect order is not sure.
    most = 1 - 12 / (count**3 - count)
    centre = math.atanh(min(most, max(-most, value)))
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    half = z * math.sqrt((1 + value**2 / 2) / (count - 3))
    low, high = math.tanh(centre - half), math.tanh(centre + half)
    return CorrelationRecord(value=value, low=min(low, value), high=max(high, value), pairs=count)


def spearman(x: Floats, y: Floats) -> float | None:
    """Return the correlation of the ranks, or None where one side is constant."""
    a, b = mean_ranks(x), mean_ranks(y)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    # Rounding may lead a hair beyond a perfect order.
    return min(1.0, max(-1.0, float(a @ b) / scale)) if scale > 0 else None


# SciPy's rankdata does the same; its import takes half a second where nothing else needs it.
def mean_ranks(values: Floats) -> Floats:
    """Return ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)


def complexity(
    answers: Sequence[Result], facts: Mapping[str, Mapping[str, float]]
) -> tuple[ComplexityRecord, ...]:
    """Correlate proxies with failure over tasks; no row where no task has facts.

    A proxy is a number of each task's reference (`REFERENCE_NUMBERS`).
    """
    failures = {}
    for task, own in by_task(r for r in answers if r.judged).items():
        count = len(own)
        failures[task] = (
            sum(not r.called for r in own) / count,
            sum(not r.correct for r in own) / count,
        )
    rows = []
    for proxy in REFERENCE_NUMBERS:
        known = [t for t in sorted(failures) if proxy in facts.get(t, {})]
        if not known:
            continue
        values = [facts[t][proxy] for t in known]
        call, exe = (
            rank_correlation(values, [failures[t][stage] for t in known]) for stage in (0, 1)
        )
        rows.append(ComplexityRecord(proxy=proxy, call=call, exe=exe))
    return tuple(rows)
