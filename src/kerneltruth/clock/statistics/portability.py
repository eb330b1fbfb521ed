"""The same kernels timed in several runs, on one device or many: do their speedups travel? Pure.

A kernel's speedup in a run is the geometric mean of its ratios, over the shapes that were timed in
every run that timed it at all, so that runs are compared on the same shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from kerneltruth.clock.statistics.summary import Interval, outcome
from kerneltruth.documents.runs import ComparedKernel, ComparedSpeed, SpeedupInterval, Spread

# Ratios of one run, by kernel and shape.
KernelRatios = Mapping[str, Mapping[str, Interval]]

WITHIN = (0.01, 0.05, 0.10)


def portability(runs: Sequence[KernelRatios]) -> ComparedSpeed:
    """Compare the speedups of several runs."""
    names = dict.fromkeys(name for run in runs for name in run)
    found = [k for name in names if (k := _kernel(name, runs)) is not None]
    found.sort(key=lambda k: (-k.spread, k.name))
    spreads = [k.spread for k in found]
    return ComparedSpeed(
        timed=tuple(sum(bool(shapes) for shapes in run.values()) for run in runs),
        shared=len(found),
        kernels=tuple(found),
        speedups=tuple(
            quantiles(s.ratio for k in found if (s := k.speedups[i]) is not None)
            for i in range(len(runs))
        ),
        spread=quantiles(spreads),
        within={f"{share:.0%}": sum(s <= 1 + share for s in spreads) for share in WITHIN},
        differ=sum(k.differs for k in found),
        flips=sum(k.flips for k in found),
    )


def _kernel(name: str, runs: Sequence[KernelRatios]) -> ComparedKernel | None:
    seen = [run.get(name) or {} for run in runs]
    if not any(seen):
        return None
    shared = set.intersection(*(set(shapes) for shapes in seen if shapes))
    speedups = tuple(
        combined([shapes[s] for s in sorted(shared)]) if shapes and shared else None
        for shapes in seen
    )
    known = [s for s in speedups if s is not None]
    if len(known) < 2:
        return None
    outcomes = {outcome(s) for s in known}
    return ComparedKernel(
        name=name,
        shapes=len(shared),
        speedups=tuple(
            None if s is None else SpeedupInterval(ratio=s.estimate, low=s.low, high=s.high)
            for s in speedups
        ),
        spread=max(s.estimate for s in known) / min(s.estimate for s in known),
        differs=any(a.high < b.low or b.high < a.low for a, b in combinations(known, 2)),
        flips={"faster", "slower"} <= outcomes,
    )


def combined(ratios: Sequence[Interval]) -> Interval:
    """Return the geometric mean of independent ratios; half-widths add up in squares, in logs."""
    count = len(ratios)
    centre = math.fsum(math.log(r.estimate) for r in ratios) / count
    if any(r.half_width == math.inf for r in ratios):
        return Interval(estimate=math.exp(centre), low=0.0, high=math.inf, level=ratios[0].level)
    down = math.hypot(*(math.log(r.estimate / r.low) for r in ratios)) / count
    up = math.hypot(*(math.log(r.high / r.estimate) for r in ratios)) / count
    return Interval(
        estimate=math.exp(centre),
        low=math.exp(centre - down),
        high=math.exp(centre + up),
        level=ratios[0].level,
    )


def quantiles(values: Iterable[float]) -> Spread:
    """Return the distribution of some numbers, interpolated linearly between neighbours."""
    known = list(values)
    names = ("least", "p10", "p25", "median", "p75", "p90", "most")
    if not known:
        return Spread(count=0, **dict.fromkeys(names))
    places = np.quantile(known, [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1]).tolist()
    return Spread(count=len(known), **dict(zip(names, places, strict=True)))
