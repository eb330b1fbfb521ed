"""What a contest shows: how a candidate stands against each baseline, and whether its times hold.

A child's device events are claims. The judge's own clock saw every lap from outside, with a cost
around the calls that the shortest laps show. A candidate whose laps took longer on the judge's
clock than its events admit is suspect, and is given the judge's times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from kerneltruth.clock.contest import Contest
from kerneltruth.clock.contestants import Contestant, LapSeen
from kerneltruth.clock.statistics.summary import (
    Block,
    Interval,
    Outcome,
    agree,
    outcome,
    ratio_interval,
    slope,
    time_interval,
)

# How much longer laps may be on the judge's clock than events admit, beyond both intervals.
MORE_S = 1e-4
SHARE = 0.03
# How much more a lap may cost around its calls than it does with the baselines.
AROUND_S = 3e-4
# By how much, in logs, two processes may differ at the same work where calls wait for their host:
# `audit --suite kernelbenchx --timed` has shown 29%.
HOST_NOISE = 0.3
# A lap's calls cannot have taken less than nothing.
_LEAST_S = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A candidate against one baseline: baseline time over candidate time, and what that means."""

    baseline: str
    baseline_s: float
    ratio: Interval
    outcome: Outcome
    suspect: bool = False


def candidate_times(contest: Contest) -> Interval:
    """Seconds of one call of the candidate, over all laps that count; by the slower clock."""
    if is_suspect(contest):
        return time_interval([s for block in _net(contest) for s in block])
    laps = laps_of(contest, contest.sides[0].name)
    return time_interval([max(lap.per_call_s, _LEAST_S) for lap in laps])


def standings(contest: Contest, *, noise_floor: float | None) -> tuple[Standing, ...]:
    """The candidate against each other side, in order; `noise_floor` as for `ratio_interval`.

    Where calls wait for their host, what differs between processes is `HOST_NOISE`.
    """
    suspect = is_suspect(contest)
    found = []
    for side in contest.sides[1:]:
        ratio = ratio_interval(
            _by_judge(contest, side.name) if suspect else by_events(contest, side.name),
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


def waits_for_hosts(contest: Contest, side: Contestant) -> bool:
    """Whether calls of the candidate or of this side wait for the device, and so for their host."""
    return side.waits or contest.sides[0].waits


def by_events(contest: Contest, baseline: str) -> list[Block]:
    """Blocks of per-call times as device events show them."""
    own = contest.sides[0].name
    return [
        Block(
            candidate_s=tuple(max(lap.per_call_s, _LEAST_S) for lap in block[own]),
            baseline_s=tuple(max(lap.per_call_s, _LEAST_S) for lap in block[baseline]),
        )
        for block in contest.blocks
    ]


def _by_judge(contest: Contest, baseline: str) -> list[Block]:
    """The same with the candidate's times from the judge's clock, less the usual overhead."""
    return [
        Block(
            candidate_s=net,
            baseline_s=tuple(max(lap.per_call_s, _LEAST_S) for lap in block[baseline]),
        )
        for net, block in zip(_net(contest), contest.blocks, strict=True)
    ]


def _net(contest: Contest) -> list[tuple[float, ...]]:
    """The candidate's calls on the judge's clock, less what laps usually cost around them."""
    own = contest.sides[0].name
    return [
        tuple(
            max(lap.per_call_s, (lap.wall_s - usual) / lap.calls, _LEAST_S)
            for lap, usual in zip(block[own], overheads, strict=True)
        )
        for block, overheads in zip(contest.blocks, _overheads(contest), strict=True)
    ]


def laps_of(contest: Contest, name: str) -> list[LapSeen]:
    """The laps of one side that count, in order."""
    return [lap for block in contest.blocks for lap in block[name]]


def is_suspect(contest: Contest) -> bool:
    """Whether the judge's clock contradicts what the candidate's events claim."""
    if not contest.blocks:
        return False
    laps = laps_of(contest, contest.sides[0].name)
    usual = [seconds for block in _overheads(contest) for seconds in block]
    if len({lap.calls for lap in laps}) > 1:
        net = [lap.wall_s - cost for lap, cost in zip(laps, usual, strict=True)]
        if not agree(_claimed(laps), slope([lap.calls for lap in laps], net)):
            return True
    if len(contest.sides) < 2:
        return False
    more = median(lap.wall_s - lap.device_s - cost for lap, cost in zip(laps, usual, strict=True))
    trusted = contest.sides[1].name
    claimed = ratio_interval(by_events(contest, trusted))
    seen = ratio_interval(_by_judge(contest, trusted))
    return more > MORE_S and seen.high * (1 + SHARE) < claimed.low


def _claimed(laps: Sequence[LapSeen]) -> float:
    """Seconds of a call by the events; of one call more, where a lap had a head start.

    Where the host is slower than the device, a lap takes its time, less what it was ahead: a call
    more takes all of it, on either clock. What the child says of its host excuses nothing.
    """
    line = slope([lap.calls for lap in laps], [lap.device_s for lap in laps])
    return max(median(lap.per_call_s for lap in laps), line.per_call_s)


def _overheads(contest: Contest) -> list[tuple[float, ...]]:
    """What each lap of the candidate costs on the judge's clock beyond its events, block by block.

    That is what its shortest lap cost, right after: the same process, as quick or slow as its host
    was then. It counts up to what the baselines' laps of the block cost, and `AROUND_S` more.
    """
    own, longer_s = contest.sides[0].name, _longer(contest)
    names = [side.name for side in contest.sides[1:]]
    found = []
    for block, around in zip(contest.blocks, contest.around, strict=True):
        most = (
            median(lap.wall_s - lap.device_s for name in names for lap in block[name]) + AROUND_S
            if names
            else math.inf
        )
        found.append(tuple(min(seconds, most) + longer_s for seconds in around[own]))
    return found


def _longer(contest: Contest) -> float:
    """What a lap costs beyond its events, more than a shortest one, though nobody hides a thing.

    Clocks that a lap drives down, and hosts that sleep longer. A baseline shows it, in blocks that
    were run because the candidate was doubted. No more than `MORE_S`, whatever hindered it.
    """
    names = [side.name for side in contest.sides[1:2]]
    seen = [
        lap.wall_s - lap.device_s - cost
        for block, around in zip(contest.blocks, contest.around, strict=True)
        for name in names
        for lap, cost in zip(block[name], around.get(name, ()), strict=False)
    ]
    return min(max(median(seen), 0.0), MORE_S) if seen else 0.0
