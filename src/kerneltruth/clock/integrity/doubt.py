"""What makes the judge doubt a candidate: its claims, and baselines that it has hindered.

A child's device events are claims. The judge's own clock saw every lap from outside, with a cost
around the calls that the shortest laps show. A candidate whose laps took longer on the judge's
clock than its events admit is suspect, and is given the judge's times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from kerneltruth.clock.protocol.sides import LapSeen, Measured
from kerneltruth.clock.statistics.summary import (
    Block,
    agree,
    ratio_interval,
    slope,
)

# How much longer laps may be on the judge's clock than events admit, beyond both intervals.
MORE_S = 1e-4
SHARE = 0.03
# How much more a lap may cost around its calls than it does with the baselines.
AROUND_S = 3e-4
# A lap's calls cannot have taken less than nothing.
LEAST_S = 1e-9


def by_events(contest: Measured, baseline: str) -> list[Block]:
    """Blocks of per-call times as device events show them."""
    own = contest.sides[0].name
    return [
        Block(
            candidate_s=tuple(max(lap.per_call_s, LEAST_S) for lap in block[own]),
            baseline_s=tuple(max(lap.per_call_s, LEAST_S) for lap in block[baseline]),
        )
        for block in contest.blocks
    ]


def by_judge(contest: Measured, baseline: str) -> list[Block]:
    """The same with the candidate's times from the judge's clock, less the usual overhead."""
    return [
        Block(
            candidate_s=net,
            baseline_s=tuple(max(lap.per_call_s, LEAST_S) for lap in block[baseline]),
        )
        for net, block in zip(judge_times(contest), contest.blocks, strict=True)
    ]


def judge_times(contest: Measured) -> list[tuple[float, ...]]:
    """The candidate's calls on the judge's clock, less what laps usually cost around them."""
    own = contest.sides[0].name
    return [
        tuple(
            max(lap.per_call_s, (lap.wall_s - usual) / lap.calls, LEAST_S)
            for lap, usual in zip(block[own], overheads, strict=True)
        )
        for block, overheads in zip(contest.blocks, _overheads(contest), strict=True)
    ]


def laps_of(contest: Measured, name: str) -> list[LapSeen]:
    """The laps of one side that count, in order."""
    return [lap for block in contest.blocks for lap in block[name]]


def is_suspect(contest: Measured) -> bool:
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
    seen = ratio_interval(by_judge(contest, trusted))
    return more > MORE_S and seen.high * (1 + SHARE) < claimed.low


def _claimed(laps: Sequence[LapSeen]) -> float:
    """Seconds of a call by the events; of one call more, where a lap had a head start.

    Where the host is slower than the device, a lap takes its time, less what it was ahead: a call
    more takes all of it, on either clock. What the child says of its host excuses nothing.
    """
    line = slope([lap.calls for lap in laps], [lap.device_s for lap in laps])
    return max(median(lap.per_call_s for lap in laps), line.per_call_s)


def _overheads(contest: Measured) -> list[tuple[float, ...]]:
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


def _longer(contest: Measured) -> float:
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


# By which share a baseline may be slower beside a candidate than without it; and where the device's
# power limits them, which a candidate may rightly use more of.
HINDERED = 0.03
HINDERED_CAPPED = 0.1


def was_hindered(
    contest: Measured, baseline: str, alone_s: Sequence[float], *, capped: bool = False
) -> bool:
    """Whether a baseline was slower beside the candidate than after the candidate's end.

    Where the device's power limits a kernel, its laps scatter by some percent; so three quarters of
    those beside the candidate must have been slower than three quarters of those without it.

    Args:
        contest: with the candidate.
        baseline: the baseline's name.
        alone_s: of its calls in laps without the candidate.
        capped: whether the device was at its power's limit beside the candidate.
    """
    share = HINDERED_CAPPED if capped else HINDERED
    beside = sorted(lap.per_call_s for lap in laps_of(contest, baseline))
    alone = sorted(alone_s)[3 * len(alone_s) // 4]
    return beside[len(beside) // 4] > alone * (1 + share)
