"""A candidate compared with each baseline: the ratio of their times, and what it supports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from kerneltruth.clock.integrity.doubt import (
    LEAST_S,
    by_events,
    by_judge,
    is_suspect,
    judge_times,
    laps_of,
)
from kerneltruth.clock.protocol.sides import Contestant, Measured
from kerneltruth.clock.statistics.summary import (
    Interval,
    Outcome,
    outcome,
    ratio_interval,
    time_interval,
)

# By how much, in logs, two processes may differ at the same work where calls wait for their host:
# `audit --suite kernelbenchx --timed` has shown 29%.
HOST_NOISE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A candidate against one baseline: baseline time over candidate time, and what that means."""

    baseline: str
    baseline_s: float
    ratio: Interval
    outcome: Outcome
    suspect: bool = False


def candidate_times(contest: Measured) -> Interval:
    """Seconds of one call of the candidate, over all laps that count; by the slower clock."""
    if is_suspect(contest):
        return time_interval([s for block in judge_times(contest) for s in block])
    laps = laps_of(contest, contest.sides[0].name)
    return time_interval([max(lap.per_call_s, LEAST_S) for lap in laps])


def standings(contest: Measured, *, noise_floor: float | None) -> tuple[Standing, ...]:
    """The candidate against each other side, in order; `noise_floor` as for `ratio_interval`.

    Where calls wait for their host, what differs between processes is `HOST_NOISE`.
    """
    suspect = is_suspect(contest)
    found = []
    for side in contest.sides[1:]:
        ratio = ratio_interval(
            by_judge(contest, side.name) if suspect else by_events(contest, side.name),
            noise_floor=HOST_NOISE if waits_for_hosts(contest, side) else noise_floor,
        )
        found.append(
            Standing(
                baseline=side.name,
                baseline_s=median(lap.per_call_s for lap in laps_of(contest, side.name)),
                ratio=ratio,
                outcome="tie" if suspect and ratio.estimate > 1 else outcome(ratio),
                suspect=suspect,
            )
        )
    return tuple(found)


def nearly_tied(found: Sequence[Standing], near: float) -> tuple[str, ...]:
    """Baselines that are quicker or slower than the candidate by less than `near`, in logs."""
    return tuple(
        s.baseline for s in found if s.outcome != "tie" and abs(math.log(s.ratio.estimate)) < near
    )


def confirmed(first: Standing, second: Standing) -> Standing:
    """What looks in two pairs of processes say together: a claim is one that both make.

    The interval holds both of theirs, since what differs between processes is in neither.
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


def waits_for_hosts(contest: Measured, side: Contestant) -> bool:
    """Whether calls of the candidate or of this side wait for the device, and so for their host."""
    return side.waits or contest.sides[0].waits
