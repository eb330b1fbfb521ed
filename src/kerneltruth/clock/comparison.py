"""Compare a candidate with each baseline: the ratio of their times, and what it supports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    Outcome,
    outcome,
    ratio_interval,
    time_interval,
)

# How much, in logs, two processes with the same work may differ if calls wait for their host:
# `audit --suite kernelbenchx --timed` has shown 29%.
HOST_NOISE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A candidate against one baseline: baseline time over candidate time, and what that means."""

    baseline: str
    baseline_s: float
    ratio: Interval
    outcome: Outcome
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
                outcome="tie" if suspect and ratio.estimate > 1 else outcome(ratio),
                suspect=suspect,
            )
        )
    return tuple(found)


def nearly_tied(found: Sequence[Comparison], near_tie: float) -> tuple[str, ...]:
    """Baselines that are quicker or slower than the candidate by less than `near_tie`, in logs."""
    return tuple(
        s.baseline
        for s in found
        if s.outcome != "tie" and abs(math.log(s.ratio.estimate)) < near_tie
    )


def confirmed(first: Comparison, second: Comparison) -> Comparison:
    """Combine the results of two pairs of processes: a claim holds only if both make it.

    The interval contains both of theirs, since neither includes the difference between processes.
    """
    one, other = first.ratio, second.ratio
    both = Interval(
        estimate=math.sqrt(one.estimate * other.estimate),
        low=min(one.low, other.low),
        high=max(one.high, other.high),
        level=one.level,
    )
    same = first.outcome == second.outcome
    return replace(first, ratio=both, outcome=first.outcome if same else "tie")


def waits_for_hosts(benchmark: Measurements, side: Side) -> bool:
    """Return whether calls of the candidate or this side wait for the device and so their host."""
    return side.waits or benchmark.sides[0].waits
