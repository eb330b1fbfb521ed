"""The same kernels on several devices: do speedups, and verdicts, travel? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from kerneltruth.analysis.intervals import Rate, clustered_rate
from kerneltruth.analysis.ranks import Correlation, rank_correlation
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import Ratio, Result
from kerneltruth.analysis.speeds import EAGER
from kerneltruth.clock.statistics.portability import Kernel
from kerneltruth.clock.statistics.portability import portability as compared
from kerneltruth.clock.statistics.summary import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Travelled:
    """One kernel that is correct and timed on two or more devices.

    Attributes:
        shapes: those that were timed on each of them; the speedups are of these.
        speedups: by device.
        spread: the largest over the smallest.
        differs: whether the intervals of some two devices exclude each other.
        flips: faster than the baseline on one device, and slower on another.
    """

    task: str
    sha256: str
    method: str | None
    model: str | None
    shapes: int
    speedups: dict[str, float]
    spread: float
    differs: bool
    flips: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two devices: the rank correlation of the speedups of the kernels timed on both."""

    one: str
    other: str
    correlation: Correlation


@dataclass(frozen=True, slots=True, kw_only=True)
class PortabilityTable:
    """What changes from device to device.

    Attributes:
        same_verdict: kernels right on all devices or on none, of those judged on two or more.
        median_spread: over the kernels timed on two or more; `largest` is the most.
        differ: how many of these differ beyond their intervals.
        flips: how many are faster here and slower there.
        kernels: each of these, the largest spread first.
    """

    devices: tuple[str, ...]
    baseline: str
    same_verdict: Rate
    timed: int
    median_spread: float | None
    largest: float | None
    differ: Rate
    flips: Rate
    pairs: tuple[Pair, ...]
    kernels: tuple[Travelled, ...]


def portability(study: Study, *, baseline: str = EAGER) -> PortabilityTable | None:
    """Compare devices; None of runs that are all from one."""
    if len(study.devices) < 2:
        return None
    kernels: dict[tuple[str, str], dict[str, Result]] = {}
    for result in study.attempts:
        if result.judged:
            seen = kernels.setdefault((result.task, result.sha256), {})
            device = study.device_of(result)
            # The first run with a time counts for a device.
            if device not in seen or (result.timed and not seen[device].timed):
                seen[device] = result
    shared = {key: seen for key, seen in kernels.items() if len(seen) > 1}
    alike = {k: len({r.correct for r in seen.values()}) == 1 for k, seen in shared.items()}
    travelled = _travelled(study.devices, shared, baseline)
    spreads = [t.spread for t in travelled]
    return PortabilityTable(
        devices=study.devices,
        baseline=baseline,
        same_verdict=clustered_rate((task, same) for (task, _), same in alike.items()),
        timed=len(travelled),
        median_spread=median(spreads) if spreads else None,
        largest=max(spreads, default=None),
        differ=clustered_rate((t.task, t.differs) for t in travelled),
        flips=clustered_rate((t.task, t.flips) for t in travelled),
        pairs=tuple(_pairs(study.devices, travelled)),
        kernels=tuple(travelled),
    )


def ratios_by_shape(result: Result, baseline: str) -> dict[str, Interval]:
    """A result's ratios to a baseline, by shape."""
    if result.timing is None:
        return {}
    shapes = result.timing.shapes
    return {s.case: _interval(s.baselines[baseline]) for s in shapes if baseline in s.baselines}


def _interval(ratio: Ratio) -> Interval:
    """The ratio; one without an interval, as runs of old have it, may be anywhere."""
    low = 0.0 if ratio.low is None else min(ratio.low, ratio.ratio)
    high = float("inf") if ratio.high is None else max(ratio.high, ratio.ratio)
    return Interval(estimate=ratio.ratio, low=low, high=high)


def _travelled(
    devices: Sequence[str], shared: dict[tuple[str, str], dict[str, Result]], baseline: str
) -> list[Travelled]:
    names = {f"{task} {sha256}": (task, sha256) for task, sha256 in shared}
    timed = [
        {
            name: ratios_by_shape(shared[key][device], baseline)
            for name, key in names.items()
            if device in shared[key] and shared[key][device].correct
        }
        for device in devices
    ]
    found = compared(timed).kernels
    return [_kernel(kernel, devices, shared[names[kernel.name]]) for kernel in found]


def _kernel(kernel: Kernel, devices: Sequence[str], seen: dict[str, Result]) -> Travelled:
    first = next(iter(seen.values()))
    speedups = zip(devices, kernel.speedups, strict=True)
    return Travelled(
        task=first.task,
        sha256=first.sha256,
        method=first.method,
        model=first.model,
        shapes=kernel.shapes,
        speedups={device: s.estimate for device, s in speedups if s is not None},
        spread=kernel.spread,
        differs=kernel.differs,
        flips=kernel.flips,
    )


def _pairs(devices: Sequence[str], kernels: Sequence[Travelled]) -> list[Pair]:
    found = []
    for one, other in combinations(devices, 2):
        both = [k.speedups for k in kernels if one in k.speedups and other in k.speedups]
        correlation = rank_correlation([s[one] for s in both], [s[other] for s in both])
        found.append(Pair(one=one, other=other, correlation=correlation))
    return found
