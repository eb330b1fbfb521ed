"""The same kernels on several devices: do speedups, and verdicts, travel? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from kerneltruth.analysis.intervals import Rate, rate
from kerneltruth.analysis.ranks import Correlation, rank_correlation
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import Result
from kerneltruth.analysis.speeds import EAGER


@dataclass(frozen=True, slots=True, kw_only=True)
class Travelled:
    """One kernel that is correct and timed on two or more devices.

    Attributes:
        speedups: by device.
        spread: the largest over the smallest.
        flips: surely faster than the baseline on one device, and surely slower on another.
    """

    task: str
    sha256: str
    method: str | None
    model: str | None
    speedups: dict[str, float]
    spread: float
    flips: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two devices: the rank correlation of the speedups of the kernels timed on both."""

    one: str
    other: str
    correlation: Correlation


@dataclass(frozen=True, slots=True, kw_only=True)
class Portability:
    """What changes from device to device.

    Attributes:
        same_verdict: kernels right on all devices or on none, of those judged on two or more.
        median_spread: over the kernels timed on two or more; `largest` is the most.
        flips: how many of these are faster here and slower there.
        kernels: each of these, the largest spread first.
    """

    devices: tuple[str, ...]
    baseline: str
    same_verdict: Rate
    timed: int
    median_spread: float | None
    largest: float | None
    flips: Rate
    pairs: tuple[Pair, ...]
    kernels: tuple[Travelled, ...]


def portability(study: Study, *, baseline: str = EAGER, seed: int = 0) -> Portability | None:
    """Compare devices; None of runs that are all from one."""
    if len(study.devices) < 2:
        return None
    kernels: dict[tuple[str, str], dict[str, Result]] = {}
    for result in study.attempts:
        if result.judged:
            seen = kernels.setdefault((result.task, result.sha256), {})
            device = study.device_of(result)
            # Of runs on one device the first that has a time counts.
            if device not in seen or (result.timed and not seen[device].timed):
                seen[device] = result
    shared = [seen for seen in kernels.values() if len(seen) > 1]
    same = sum(len({r.correct for r in seen.values()}) == 1 for seen in shared)
    travelled = [t for seen in shared if (t := _travelled(seen, baseline)) is not None]
    travelled.sort(key=lambda t: (-t.spread, t.task, t.sha256))
    spreads = [t.spread for t in travelled]
    return Portability(
        devices=study.devices,
        baseline=baseline,
        same_verdict=rate(same, len(shared)),
        timed=len(travelled),
        median_spread=median(spreads) if spreads else None,
        largest=max(spreads, default=None),
        flips=rate(sum(t.flips for t in travelled), len(travelled)),
        pairs=tuple(_pairs(study.devices, travelled, seed)),
        kernels=tuple(travelled),
    )


def _travelled(seen: dict[str, Result], baseline: str) -> Travelled | None:
    timed = {d: a for d, r in seen.items() if (a := r.against(baseline)) is not None}
    if len(timed) < 2:
        return None
    speedups = {device: a.speedup for device, a in timed.items()}
    standings = {a.standing for a in timed.values()}
    first = next(iter(seen.values()))
    return Travelled(
        task=first.task,
        sha256=first.sha256,
        method=first.method,
        model=first.model,
        speedups=speedups,
        spread=max(speedups.values()) / min(speedups.values()),
        flips={"faster", "slower"} <= standings,
    )


def _pairs(devices: Sequence[str], kernels: Sequence[Travelled], seed: int) -> list[Pair]:
    found = []
    for one, other in combinations(devices, 2):
        both = [k.speedups for k in kernels if one in k.speedups and other in k.speedups]
        correlation = rank_correlation([s[one] for s in both], [s[other] for s in both], seed=seed)
        found.append(Pair(one=one, other=other, correlation=correlation))
    return found
