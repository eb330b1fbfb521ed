"""Compare a candidate with each baseline: the ratio of their times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from kerneltruth.clock.integrity.suspicion import (
    LEAST_S,
    batches_of,
    by_events,
    by_judge,
    is_suspect,
    judge_times,
)
from kerneltruth.clock.protocol.sides import Measurements, Side
from kerneltruth.clock.statistics.summary import (
    Interval,
    ratio_interval,
    time_interval,
)

# How much, in logs, two processes with the same work may differ if calls wait for their host:
# `audit --suite kernelbenchx --timed` has shown 29%. Calls on a CPU are held to it, too
# (`benchmarks/clock_cpu.py`).
HOST_NOISE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A candidate against one baseline: baseline time over candidate time.

    Attributes:
        suspect: whether the judge's clock contradicts the candidate's; the ratio is by the judge's.
    """

    baseline: str
    baseline_s: float
    ratio: Interval
    suspect: bool = False


def candidate_times(benchmark: Measurements) -> Interval:
    """Return seconds of one call of the candidate, over counted batches; by the slower clock."""
    if is_suspect(benchmark):
        return time_interval([s for block in judge_times(benchmark) for s in block])
    batches = batches_of(benchmark, benchmark.sides[0].name)
    return time_interval([max(batch.per_call_s, LEAST_S) for batch in batches])


def comparisons(benchmark: Measurements, *, noise_floor: float | None) -> tuple[Comparison, ...]:
    """Compare the candidate with each other side, in order; `noise_floor` as for `ratio_interval`.

    If calls wait for their host, processes differ by up to `HOST_NOISE`.
    """
    suspect = is_suspect(benchmark)
    found = []
    for side in benchmark.sides[1:]:
        ratio = ratio_interval(
            by_judge(benchmark, side.name) if suspect else by_events(benchmark, side.name),
            noise_floor=HOST_NOISE if waits_for_hosts(benchmark, side) else noise_floor,
        )
        found.append(
            Comparison(
                baseline=side.name,
                baseline_s=median(batch.per_call_s for batch in batches_of(benchmark, side.name)),
                ratio=ratio,
                suspect=suspect,
            )
        )
    return tuple(found)


def of_both(one: Interval, other: Interval) -> Interval:
    """Combine the ratios of two pairs of processes.

    The interval contains both of theirs, since neither includes the difference between processes.
    """
    return Interval(
        estimate=math.sqrt(one.estimate * other.estimate),
        low=min(one.low, other.low),
        high=max(one.high, other.high),
        level=one.level,
    )


def waits_for_hosts(benchmark: Measurements, side: Side) -> bool:
    """Return whether calls of the candidate or this side wait for the device and so their host."""
    return side.waits or benchmark.sides[0].waits
