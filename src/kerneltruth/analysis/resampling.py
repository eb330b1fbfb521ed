"""How far chance alone explains correctness, and how sure the explained share is. Pure.

Answers to one task are alike: a hard task is hard for every method. So tasks, not answers, are
shuffled and resampled. For each task there are counts by method, `right` and `total`, (tasks,
methods), and the number of its category.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltruth.analysis.intervals import CONFIDENCE
from kerneltruth.analysis.tables import (
    additive_deviance,
    cells_deviance,
    columns_deviance,
    null_deviance,
    rows_deviance,
)

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

PERMUTATIONS = 999
RESAMPLES = 1000
_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Right answers and all answers by task and method, and each task's category."""

    right: Floats
    total: Floats
    category: Numbers
    categories: int

    def table(self, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Right and all, (categories, methods), each task counted as often as it weighs.

        Weights of several resamples, (resamples, tasks), give as many tables.
        """
        belongs = np.eye(self.categories)[self.category]
        if weights is None:
            return belongs.T @ self.right, belongs.T @ self.total
        spread = weights[:, :, None] * belongs[None]
        right = np.einsum("rtc,tm->rcm", spread, self.right, optimize=True)
        total = np.einsum("rtc,tm->rcm", spread, self.total, optimize=True)
        return right, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Explained shares of the null deviance, one of each for each resample."""

    category: Floats
    method: Floats
    both: Floats
    interaction: Floats


def shares(right: Floats, total: Floats) -> Shares:
    """What each model explains of stacks of tables; NaN where there is nothing to explain."""
    null = null_deviance(right, total)
    null = np.where(null > 0, null, np.nan)
    return Shares(
        category=1 - rows_deviance(right, total) / null,
        method=1 - columns_deviance(right, total) / null,
        both=1 - additive_deviance(right, total) / null,
        interaction=1 - cells_deviance(right, total) / null,
    )


def bootstrap_shares(counts: Counts, *, seed: int, resamples: int = RESAMPLES) -> Shares:
    """The explained shares of resampled tasks."""
    rng = np.random.default_rng(seed)
    tasks = len(counts.category)
    chance = np.full(tasks, 1 / tasks)

    def draw(size: int) -> Shares:
        return shares(*counts.table(rng.multinomial(tasks, chance, size=size).astype(float)))

    return _stacked(draw, resamples)


def shuffled_categories(counts: Counts, *, seed: int, permutations: int = PERMUTATIONS) -> Shares:
    """The explained shares when categories are dealt out anew over the tasks.

    Nothing is then due to categories, and tasks stay as hard as they are.
    """
    rng = np.random.default_rng(seed)

    def draw(size: int) -> Shares:
        orders = np.stack([rng.permutation(len(counts.category)) for _ in range(size)])
        belongs = np.eye(counts.categories)[counts.category[orders]]
        right = np.einsum("rtc,tm->rcm", belongs, counts.right, optimize=True)
        total = np.einsum("rtc,tm->rcm", belongs, counts.total, optimize=True)
        return shares(right, total)

    return _stacked(draw, permutations)


def shuffled_methods(counts: Counts, *, seed: int, permutations: int = PERMUTATIONS) -> Shares:
    """The explained shares when the answers of each task are dealt out anew to its methods.

    That is a draw, for each task, of who gets its right answers: without replacement. Nothing is
    then due to methods, nor to which category suits which method; categories keep their share.
    """
    rng = np.random.default_rng(seed)
    belongs = np.eye(counts.categories)[counts.category]
    sizes = counts.total.astype(np.int64)
    right = counts.right.sum(1).astype(np.int64)

    def draw(size: int) -> Shares:
        dealt = np.stack(
            [
                rng.multivariate_hypergeometric(own, count, size=size)
                for own, count in zip(sizes, right, strict=True)
            ]
        )
        tables = np.einsum("tc,trm->rcm", belongs, dealt.astype(float), optimize=True)
        total = np.broadcast_to((belongs.T @ counts.total)[None], tables.shape)
        return shares(tables, total)

    return _stacked(draw, permutations)


def p_value(observed: float, by_chance: Floats) -> float:
    """How often chance does as well; the observation counts as one of its draws."""
    known = by_chance[np.isfinite(by_chance)]
    # A share that equals the observed one but for rounding is as large.
    return float((1 + (known >= observed - 1e-12).sum()) / (1 + len(known)))


def reflected(
    observed: float, resampled: Floats, confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """The interval on the other side: observed minus how far resamples lie above it.

    A model explains some of any sample by chance, and of a resample as much again: resampled
    shares lie too high by about what the observed one does. Reflecting takes that out twice over,
    where percentiles would put it in twice.
    """
    known = resampled[np.isfinite(resampled)]
    if not len(known):
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return max(0.0, float(2 * observed - high)), max(0.0, float(2 * observed - low))


def _stacked(draw: Callable[[int], Shares], count: int) -> Shares:
    blocks = [draw(min(_AT_ONCE, count - start)) for start in range(0, count, _AT_ONCE)]
    return Shares(
        category=np.concatenate([b.category for b in blocks]),
        method=np.concatenate([b.method for b in blocks]),
        both=np.concatenate([b.both for b in blocks]),
        interaction=np.concatenate([b.interaction for b in blocks]),
    )
