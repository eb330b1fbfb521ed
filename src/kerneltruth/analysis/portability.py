"""Verdicts and speedups of the same kernels on several devices. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median

from kerneltruth.analysis.intervals import clustered_rate
from kerneltruth.analysis.ranks import rank_correlation
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import Ratio, Result
from kerneltruth.analysis.speeds import EAGER
from kerneltruth.clock.statistics.portability import portability as compared
from kerneltruth.clock.statistics.summary import Interval
from kerneltruth.documents.effects import DevicePair, PortabilityTables, PortableKernel
from kerneltruth.documents.runs import ComparedKernel


def portability(study: Study) -> PortabilityTables | None:
    """Compare devices; None if all runs are from one."""
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
    travelled = _travelled(study.devices, shared)
    spreads = [t.spread for t in travelled]
    return PortabilityTables(
        devices=study.devices,
        baseline=EAGER,
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
    """Return a result's ratios to a baseline, by shape."""
    if result.timing is None:
        return {}
    shapes = result.timing.shapes
    return {s.case: _interval(s.baselines[baseline]) for s in shapes if baseline in s.baselines}


def _interval(ratio: Ratio) -> Interval:
    """Return the ratio; without an interval, its ends are 0 and infinity."""
    low = 0.0 if ratio.low is None else min(ratio.low, ratio.ratio)
    high = float("inf") if ratio.high is None else max(ratio.high, ratio.ratio)
    return Interval(estimate=ratio.ratio, low=low, high=high)


def _travelled(
    devices: Sequence[str], shared: dict[tuple[str, str], dict[str, Result]]
) -> list[PortableKernel]:
    names = {f"{task} {sha256}": (task, sha256) for task, sha256 in shared}
    timed = [
        {
            name: ratios_by_shape(shared[key][device], EAGER)
            for name, key in names.items()
            if device in shared[key] and shared[key][device].correct
        }
        for device in devices
    ]
    found = compared(timed).kernels
    return [_kernel(kernel, devices, shared[names[kernel.name]]) for kernel in found]


def _kernel(
    kernel: ComparedKernel, devices: Sequence[str], seen: dict[str, Result]
) -> PortableKernel:
    first = next(iter(seen.values()))
    speedups = zip(devices, kernel.speedups, strict=True)
    return PortableKernel(
        task=first.task,
        sha256=first.sha256,
        method=first.method,
        model=first.model,
        shapes=kernel.shapes,
        speedups={device: s.ratio for device, s in speedups if s is not None},
        spread=kernel.spread,
        differs=kernel.differs,
        flips=kernel.flips,
    )


def _pairs(devices: Sequence[str], kernels: Sequence[PortableKernel]) -> list[DevicePair]:
    found = []
    for one, other in combinations(devices, 2):
        both = [k.speedups for k in kernels if one in k.speedups and other in k.speedups]
        correlation = rank_correlation([s[one] for s in both], [s[other] for s in both])
        found.append(DevicePair(one=one, other=other, correlation=correlation))
    return found
