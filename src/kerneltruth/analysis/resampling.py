"""Permutations and bootstrap of the explained share. Pure.

Answers to one task are alike: a hard task is hard for every method. So tasks, not answers, are
shuffled and resampled. For each task there are counts by method, `right` and `total`, (tasks,
methods), and the number of its category.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kerneltruth.analysis.contingency import (
    additive_deviance,
    additive_odds,
    cells_deviance,
    columns_deviance,
    null_deviance,
    rows_deviance,
)
from kerneltruth.analysis.intervals import CONFIDENCE

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

PERMUTATIONS = 999
RESAMPLES = 1000
_AT_ONCE = 100
_LEAST_WEIGHT = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Right answers and all answers by task and method, and each task's category."""

    right: Floats
    total: Floats
    category: Numbers
    categories: int

    def table(self, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Return right and all answers, (categories, methods), with tasks weighted.

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
    """Explained shares of the null deviance: arrays with a value for each resample."""

    category: Floats
    method: Floats
    both: Floats
    interaction: Floats


def shares(right: Floats, total: Floats) -> Shares:
    """Return the explained share of each model; NaN where there is nothing to explain."""
    null = null_deviance(right, total)
    null = np.where(null > 0, null, np.nan)
    return Shares(
        category=1 - rows_deviance(right, total) / null,
        method=1 - columns_deviance(right, total) / null,
        both=1 - additive_deviance(right, total) / null,
        interaction=1 - cells_deviance(right, total) / null,
    )


def bootstrap_shares(counts: Counts, *, seed: int, resamples: int = RESAMPLES) -> Shares:
    """Return the explained shares of resampled tasks."""
    rng = np.random.default_rng(seed)
    tasks = len(counts.category)
    chance = np.full(tasks, 1 / tasks)

    def draw(size: int) -> Shares:
        return shares(*counts.table(rng.multinomial(tasks, chance, size=size).astype(float)))

    return _stacked(draw, resamples)


def shuffled_categories(counts: Counts, *, seed: int, permutations: int = PERMUTATIONS) -> Shares:
    """Return the explained shares when categories are permuted over tasks.

    Categories then have no effect, and tasks stay as hard as they are.
    """
    rng = np.random.default_rng(seed)

    def draw(size: int) -> Shares:
        orders = np.stack([rng.permutation(len(counts.category)) for _ in range(size)])
        belongs = np.eye(counts.categories)[counts.category[orders]]
        right = np.einsum("rtc,tm->rcm", belongs, counts.right, optimize=True)
        total = np.einsum("rtc,tm->rcm", belongs, counts.total, optimize=True)
        return shares(right, total)

    return _stacked(draw, permutations)


def balanced(counts: Counts) -> Counts:
    """Rescale counts so that each method has the same number of answers to a task.

    Each cell keeps its share of right answers, and an empty cell stays empty. Permuted cells then
    weigh the same in every place.
    """
    there = counts.total > 0
    mean = counts.total.sum(1, keepdims=True) / there.sum(1, keepdims=True)
    share = counts.right / np.maximum(counts.total, 1)
    return replace(counts, right=share * mean * there, total=mean * there)


def shuffled_methods(counts: Counts, *, seed: int, permutations: int = PERMUTATIONS) -> Shares:
    """Return the explained shares when methods are permuted within tasks, `balanced`.

    All answers of a method to a task stay together, because they are correlated: permuting single
    answers would make methods without any difference look different.
    """
    rng = np.random.default_rng(seed)
    even = balanced(counts)
    belongs = np.eye(counts.categories)[counts.category]
    there = even.total > 0
    # An empty cell stays in its place.
    fixed = np.where(there, 0.0, 2.0 + np.arange(there.shape[1]))
    home = np.argsort(fixed, axis=1, kind="stable")

    def draw(size: int) -> Shares:
        keys = rng.random((size, *there.shape)) + fixed
        order = np.empty(keys.shape, dtype=np.int64)
        np.put_along_axis(order, np.broadcast_to(home, keys.shape), np.argsort(keys, 2), 2)
        permuted = np.take_along_axis(np.broadcast_to(even.right, keys.shape), order, 2)
        total = np.broadcast_to(belongs.T @ even.total, (size, *belongs.T.shape[:1], keys.shape[2]))
        return shares(np.einsum("tc,ptm->pcm", belongs, permuted, optimize=True), total)

    return _stacked(draw, permutations)


def interaction_p(counts: Counts, *, seed: int, permutations: int = PERMUTATIONS) -> float:
    """Return the p-value of an interaction: a score test with signs flipped by task.

    The residuals of a task keep their size and flip their sign for all methods at once (Hemerik,
    Goeman and Finos, 2020). Main effects stay as they are, answers to one task stay together, and
    methods may have any number of them.
    """
    rng = np.random.default_rng(seed)
    right, total = counts.table()
    p = 1 / (1 + np.exp(-additive_odds(right, total)))
    categories, methods = right.shape
    weight = (total * p * (1 - p)).ravel()
    main = np.hstack(
        [
            np.kron(np.eye(categories), np.ones((methods, 1))),
            np.kron(np.ones((categories, 1)), np.eye(methods)),
        ]
    )
    # Project out the main effects: they are fitted, not tested.
    weighed = weight[:, None] * main
    rest = np.eye(len(weight)) - weighed @ np.linalg.pinv(main.T @ weighed) @ main.T
    lacking = counts.right - counts.total * p[counts.category]
    signs = rng.choice([-1.0, 1.0], (permutations + 1, len(lacking)))
    signs[0] = 1
    belongs = np.eye(counts.categories)[counts.category]
    scores = np.einsum("pt,tc,tm->pcm", signs, belongs, lacking, optimize=True)
    scores = scores.reshape(len(signs), -1) @ rest.T
    # A cell that is all right or all wrong has neither weight nor score.
    found = (scores**2 / np.maximum(weight, _LEAST_WEIGHT)).sum(1)
    return p_value(float(found[0]), found[1:])


def p_value(observed: float, by_chance: Floats) -> float:
    """Return the permutation p-value; the observation counts as one of the draws."""
    known = by_chance[np.isfinite(by_chance)]
    # A value that differs by rounding alone counts as equal.
    least = observed - 1e-9 * max(1e-3, abs(observed))
    return float((1 + (known >= least).sum()) / (1 + len(known)))


def debiased(
    observed: float, resampled: Floats, confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Return the percentiles of resamples, less twice their bias.

    A model explains part of any sample by chance, and as much again of a resample, so resampled
    shares have twice the bias. Their spread is kept, with its longer upper side.
    """
    known = resampled[np.isfinite(resampled)]
    if not len(known):
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail]) - 2 * (known.mean() - observed)
    return max(0.0, float(low)), max(0.0, float(high))


def _stacked(draw: Callable[[int], Shares], count: int) -> Shares:
    blocks = [draw(min(_AT_ONCE, count - start)) for start in range(0, count, _AT_ONCE)]
    return Shares(
        category=np.concatenate([b.category for b in blocks]),
        method=np.concatenate([b.method for b in blocks]),
        both=np.concatenate([b.both for b in blocks]),
        interaction=np.concatenate([b.interaction for b in blocks]),
    )
