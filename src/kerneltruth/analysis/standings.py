"""Methods ranked, with ties as ties; and the best kernels of each task. Pure.

Two methods are compared on the tasks that both have: they differ where the interval of their
difference, which resamples those tasks, excludes 0. A method's place is then a range: behind all
that are surely better, before all that are surely worse. Pairs are each taken at 95%, without
correction for their number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kerneltruth.analysis.groups import by_task, methods_of
from kerneltruth.analysis.intervals import CONFIDENCE, RESAMPLES
from kerneltruth.analysis.results import Against, Result
from kerneltruth.analysis.speeds import EAGER

Measure = Literal["right", "fast", "speedup"]
Floats = NDArray[np.float64]

# Even if one method is better on all of fewer tasks, chance does so in more than 5% (a sign test).
LEAST_TASKS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A method's place by one measure.

    Attributes:
        value: its score; None where it has nothing that the measure counts.
        count: what counts, of `total`: right answers, fast ones, or right and timed ones.
        first: its best place: 1 and those surely better.
        last: its worst place: all and not those surely worse.
        tied: how many others it cannot be told from.
    """

    method: str | None
    model: str | None
    value: float | None
    low: float | None
    high: float | None
    count: int
    total: int
    first: int | None
    last: int | None
    tied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """One right, timed kernel of a task.

    Attributes:
        methods: who made it, where several made the same source.
        tied: it cannot be told from the fastest.
    """

    run: int
    key: str
    sha256: str
    methods: tuple[tuple[str | None, str | None], ...]
    against: Against
    tied: bool


def places(
    answers: Sequence[Result],
    measure: Measure,
    *,
    baseline: str = EAGER,
    p: float = 1.0,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> tuple[Place, ...]:
    """The methods by a measure, in the order of their places.

    Args:
        answers: one for each sample.
        measure: the share of right answers; of answers right and more than `p` times as fast as
            the baseline; or the geometric mean of the speedups of right answers.
        baseline: what speeds are compared with.
        p: how much faster is fast.
        seed: of the resampling.
        resamples: how many.
    """
    methods = methods_of(answers)
    if not methods:
        return ()
    above, below = _sums(answers, methods, measure, baseline, p)
    weights = _weights(len(above), seed, resamples)
    scores = _scores(above, below, weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = above.sum(0) / below.sum(0)
    ahead = _ahead(above, below, weights)
    found = [
        _place(methods, i, observed, scores, ahead, _counted(above, below, measure, i))
        for i in range(len(methods))
    ]
    return tuple(sorted(found, key=lambda f: (f.value is None, f.first, f.last, -(f.value or 0.0))))


def _sums(
    answers: Sequence[Result],
    methods: Sequence[tuple[str | None, str | None]],
    measure: Measure,
    baseline: str,
    p: float,
) -> tuple[Floats, Floats]:
    """Numerators and denominators, (tasks, methods)."""
    column = {pair: i for i, pair in enumerate(methods)}
    tasks = by_task(answers)
    above, below = np.zeros((len(tasks), len(methods))), np.zeros((len(tasks), len(methods)))
    for row, own in enumerate(tasks.values()):
        for r in own:
            at = row, column[r.method, r.model]
            speed = r.speedup(baseline)
            if measure == "speedup":
                above[at] += math.log(speed) if speed is not None else 0.0
                below[at] += speed is not None
                continue
            above[at] += r.correct if measure == "right" else speed is not None and speed > p
            below[at] += 1
    return above, below


def _counted(above: Floats, below: Floats, measure: Measure, i: int) -> tuple[int, int, bool]:
    """What counts, of how many, and whether scores are logarithms."""
    counts = below if measure == "speedup" else above
    return int(counts[:, i].sum()), int(below[:, i].sum()), measure == "speedup"


def _weights(tasks: int, seed: int, resamples: int) -> Floats:
    """How often each task is drawn, (resamples, tasks)."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=resamples).astype(np.float64)


def _scores(above: Floats, below: Floats, weights: Floats) -> Floats:
    """Scores over resampled tasks, (resamples, methods); NaN where nothing was drawn."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((weights @ above) / (weights @ below))


def _ahead(above: Floats, below: Floats, weights: Floats) -> NDArray[np.bool_]:
    """Which method (row) is surely better than which (column)."""
    count = above.shape[1]
    found = np.zeros((count, count), dtype=bool)
    for pair in itertools.permutations(range(count), 2):
        both = (below[:, pair] > 0).all(1)
        if both.sum() < LEAST_TASKS:
            continue
        scores = _scores(above[both][:, pair], below[both][:, pair], weights[:, both])
        apart = scores[:, 0] - scores[:, 1]
        known = apart[np.isfinite(apart)]
        found[pair] = len(known) > 0 and np.quantile(known, (1 - CONFIDENCE) / 2) > 0
    return found


def _place(
    methods: Sequence[tuple[str | None, str | None]],
    i: int,
    observed: Floats,
    scores: Floats,
    ahead: NDArray[np.bool_],
    counted: tuple[int, int, bool],
) -> Place:
    count, total, logs = counted
    known = scores[:, i][np.isfinite(scores[:, i])]
    value = float(observed[i]) if math.isfinite(observed[i]) else None
    low = high = None
    # One task alone cannot say how much tasks differ.
    if value is not None and len(known) and known.min() < known.max():
        tail = (1 - CONFIDENCE) / 2
        low, high = (float(q) for q in np.quantile(known, [tail, 1 - tail]))
    rivals = [j for j in range(len(methods)) if math.isfinite(observed[j])]
    first = 1 + sum(bool(ahead[j, i]) for j in rivals)
    last = len(rivals) - sum(bool(ahead[i, j]) for j in rivals)
    tied = sum(j != i and not ahead[i, j] and not ahead[j, i] for j in rivals)
    told = (None if x is None else math.exp(x) if logs else x for x in (value, low, high))
    value, low, high = told
    method, model = methods[i]
    return Place(
        method=method,
        model=model,
        value=value,
        low=low,
        high=high,
        count=count,
        total=total,
        first=None if value is None else first,
        last=None if value is None else last,
        tied=0 if value is None else tied,
    )


def best_kernels(
    results: Sequence[Result], *, baseline: str = EAGER, most: int = 3
) -> dict[str, tuple[Best, ...]]:
    """For each task its fastest right kernels, and all that are tied with the fastest.

    Results must be of one device; the same source counts once, however often it was made.
    """
    found: dict[str, tuple[Best, ...]] = {}
    for task, own in sorted(by_task(results).items()):
        kernels: dict[str, list[Result]] = {}
        for r in own:
            if r.against(baseline) is not None:
                kernels.setdefault(r.sha256, []).append(r)
        ranked = sorted(
            ((r[0], against) for r in kernels.values() if (against := r[0].against(baseline))),
            key=lambda pair: -pair[1].speedup,
        )
        if not ranked:
            continue
        top = ranked[0]
        listed = [
            Best(
                run=r.run,
                key=r.key,
                sha256=r.sha256,
                methods=methods_of(kernels[r.sha256]),
                against=against,
                tied=r is top[0] or _alike(top, (r, against)),
            )
            for r, against in ranked
        ]
        found[task] = tuple(b for i, b in enumerate(listed) if i < most or b.tied)
    return found


def _alike(one: tuple[Result, Against], other: tuple[Result, Against]) -> bool:
    """Whether the intervals, or the noise floor, leave open which of two kernels is faster."""
    first, second = one[1], other[1]
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return first.speedup == second.speedup
    floors = [r.timing.noise_floor or 0.0 for r, _ in (one, other) if r.timing]
    apart = math.log(first.speedup / second.speedup)
    # Measured independently: on the scale of logarithms the widths add up in squares.
    width = math.hypot(math.log(first.speedup / first.low), math.log(second.high / second.speedup))
    return apart <= max(width, math.log1p(max(floors, default=0.0)))
