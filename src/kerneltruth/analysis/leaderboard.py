"""Ranks of methods with ties, and the best kernels of each task. Pure.

Two methods are compared on the tasks that both have: they differ if the 95% interval of their
difference over those tasks excludes 0. A method's rank is a range: below all methods that are
significantly better, above all that are significantly worse. Pairs are not corrected for their
number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kerneltruth.analysis.groups import by_task, methods_of
from kerneltruth.analysis.intervals import (
    influence,
    mean_of_sums,
    rate_of_counts,
    standard_error,
    student,
)
from kerneltruth.analysis.results import Against, Result

Measure = Literal["right", "fast", "speedup"]
Floats = NDArray[np.float64]

# With fewer tasks even a win on all of them has a p-value above 5% (sign test).
LEAST_TASKS = 6
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMethod:
    """A method's rank by one measure.

    Attributes:
        value: its score; None where it has nothing that the measure counts.
        count: how many count, of `total`: right answers, fast ones, or right and timed ones.
        first: its best possible rank: 1 + the number of significantly better methods.
        last: its worst possible rank: all methods - the significantly worse ones.
        tied: number of methods that are neither significantly better nor worse.
    """

    method: str | None
    model: str | None
    value: float | None
    low: float | None
    high: float | None
    count: int
    total: int
    first: int | None = None
    last: int | None = None
    tied: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BestKernel:
    """One right, timed kernel of a task.

    Attributes:
        methods: those that made this source.
        tied: it cannot be told from the fastest.
        own_time: the share of the device's time that its own kernels took, where it is known.
    """

    run: int
    key: str
    sha256: str
    methods: tuple[tuple[str | None, str | None], ...]
    against: Against
    tied: bool
    torch_only: bool = False
    own_time: float | None = None


def ranked_methods(answers: Sequence[Result], measure: Measure) -> tuple[RankedMethod, ...]:
    """Rank the methods by a measure.

    Answers, one for each sample, are measured by the share of right ones; by that of answers right
    and faster than eager PyTorch; or by the geometric mean of their speedups over it.
    """
    methods = methods_of(answers)
    if not methods:
        return ()
    above, below = _sums(answers, methods, measure)
    ahead = _ahead(above, below)
    scores = [_score(m, above[:, i], below[:, i], measure) for i, m in enumerate(methods)]
    rivals = [i for i, score in enumerate(scores) if score.value is not None]
    found = [_ranked(score, ahead, i, rivals) for i, score in enumerate(scores)]
    return tuple(sorted(found, key=lambda f: (f.value is None, f.first, f.last, -(f.value or 0.0))))


def _score(
    pair: tuple[str | None, str | None], above: Floats, below: Floats, measure: Measure
) -> RankedMethod:
    own = below > 0
    if measure == "speedup":
        mean = mean_of_sums(above[own], below[own])
        value, low, high = (
            None if x is None else math.exp(x) for x in (mean.value, mean.low, mean.high)
        )
        count = total = int(below.sum())
    else:
        found = rate_of_counts(np.stack([above[own], below[own]], axis=1).astype(int).tolist())
        value, count, total = found.rate, found.numerator, found.denominator
        # One task alone cannot say how much tasks differ.
        low, high = (found.low, found.high) if own.sum() > 1 else (None, None)
    method, model = pair
    return RankedMethod(
        method=method, model=model, value=value, low=low, high=high, count=count, total=total
    )


def _sums(
    answers: Sequence[Result],
    methods: Sequence[tuple[str | None, str | None]],
    measure: Measure,
) -> tuple[Floats, Floats]:
    """Return numerators and denominators, (tasks, methods)."""
    column = {pair: i for i, pair in enumerate(methods)}
    tasks = by_task(answers)
    above, below = np.zeros((len(tasks), len(methods))), np.zeros((len(tasks), len(methods)))
    for row, own in enumerate(tasks.values()):
        for r in own:
            at = row, column[r.method, r.model]
            speed = r.speedup()
            if measure == "speedup":
                above[at] += math.log(speed) if speed is not None else 0.0
                below[at] += speed is not None
                continue
            above[at] += r.correct if measure == "right" else speed is not None and speed > 1
            below[at] += 1
    return above, below


def _ahead(above: Floats, below: Floats) -> NDArray[np.bool_]:
    """Return which method (row) is significantly better than which (column)."""
    count = above.shape[1]
    found = np.zeros((count, count), dtype=bool)
    for one, other in itertools.permutations(range(count), 2):
        both = (below[:, one] > 0) & (below[:, other] > 0)
        if both.sum() < LEAST_TASKS:
            continue
        pairs = [(above[both, i], below[both, i]) for i in (one, other)]
        (a, a_of), (b, b_of) = pairs
        apart = a.sum() / a_of.sum() - b.sum() / b_of.sum()
        error = standard_error(influence(a, a_of) - influence(b, b_of))
        found[one, other] = apart > student(int(both.sum()) - 1) * error + _ROUNDING
    return found


def _ranked(
    score: RankedMethod, ahead: NDArray[np.bool_], i: int, rivals: Sequence[int]
) -> RankedMethod:
    if i not in rivals:
        return score
    better = sum(bool(ahead[j, i]) for j in rivals)
    worse = sum(bool(ahead[i, j]) for j in rivals)
    tied = len(rivals) - 1 - better - worse
    return replace(score, first=1 + better, last=len(rivals) - worse, tied=tied)


def best_kernels(results: Sequence[Result], *, most: int = 5) -> dict[str, tuple[BestKernel, ...]]:
    """Return each task's fastest right kernels, and those tied with the fastest.

    Results must be of one device; the same source counts once, however often it was made.
    """
    found: dict[str, tuple[BestKernel, ...]] = {}
    for task, own in sorted(by_task(results).items()):
        kernels: dict[str, list[Result]] = {}
        for r in own:
            if r.against() is not None:
                kernels.setdefault(r.sha256, []).append(r)
        ranked = sorted(
            ((r[0], against) for r in kernels.values() if (against := r[0].against())),
            key=lambda pair: -pair[1].speedup,
        )
        if not ranked:
            continue
        top = ranked[0]
        listed = [
            BestKernel(
                run=r.run,
                key=r.key,
                sha256=r.sha256,
                methods=methods_of(kernels[r.sha256]),
                against=against,
                torch_only=r.torch_only,
                own_time=r.own_time,
                tied=r is top[0] or _alike(top, (r, against)),
            )
            for r, against in ranked
        ]
        found[task] = tuple(b for i, b in enumerate(listed) if i < most or b.tied)
    return found


def _alike(one: tuple[Result, Against], other: tuple[Result, Against]) -> bool:
    """Return whether intervals or the noise floor leave open which kernel is faster."""
    first, second = one[1], other[1]
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return first.speedup == second.speedup
    floors = [r.timing.noise_floor or 0.0 for r, _ in (one, other) if r.timing]
    apart = math.log(first.speedup / second.speedup)
    # Measured independently: on the scale of logarithms the widths add up in squares.
    width = math.hypot(math.log(first.speedup / first.low), math.log(second.high / second.speedup))
    return apart <= max(width, math.log1p(max(floors, default=0.0)))
