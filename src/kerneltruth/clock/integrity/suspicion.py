"""Decide what makes a candidate suspect: false claims of time, or hindered baselines.

A child's device events are claims. The judge's own clock sees every batch from outside, plus an
overhead that the shortest batches show. A candidate is suspect if its batches took longer on the
judge's clock than its events admit; the judge's times then replace its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from kerneltruth.clock.protocol.sides import Batch, Measurements
from kerneltruth.clock.statistics.summary import (
    Block,
    agree,
    ratio_interval,
    slope,
)

# How much longer batches may take on the judge's clock than by events, beyond both intervals.
MORE_S = 1e-4
SHARE = 0.03
# How much more overhead a batch may have than batches of the baselines.
AROUND_S = 3e-4
# A batch's calls cannot have taken negative time.
LEAST_S = 1e-9


def by_events(benchmark: Measurements, baseline: str) -> list[Block]:
    """Blocks of per-call times as device events show them."""
    own = benchmark.sides[0].name
    return [
        Block(
            candidate_s=tuple(max(batch.per_call_s, LEAST_S) for batch in block[own]),
            baseline_s=tuple(max(batch.per_call_s, LEAST_S) for batch in block[baseline]),
        )
        for block in benchmark.blocks
    ]


def by_judge(benchmark: Measurements, baseline: str) -> list[Block]:
    """Return blocks with the candidate's times by the judge's clock, less the usual overhead."""
    return [
        Block(
            candidate_s=net,
            baseline_s=tuple(max(batch.per_call_s, LEAST_S) for batch in block[baseline]),
        )
        for net, block in zip(judge_times(benchmark), benchmark.blocks, strict=True)
    ]


def judge_times(benchmark: Measurements) -> list[tuple[float, ...]]:
    """Return the candidate's calls on the judge's clock, less the usual overhead of batches."""
    own = benchmark.sides[0].name
    return [
        tuple(
            max(batch.per_call_s, (batch.wall_s - usual) / batch.calls, LEAST_S)
            for batch, usual in zip(block[own], overheads, strict=True)
        )
        for block, overheads in zip(benchmark.blocks, _overheads(benchmark), strict=True)
    ]


def batches_of(benchmark: Measurements, name: str) -> list[Batch]:
    """Return the batches of one side that count, in order."""
    return [batch for block in benchmark.blocks for batch in block[name]]


def is_suspect(benchmark: Measurements) -> bool:
    """Return whether the judge's clock contradicts the candidate's events."""
    if not benchmark.blocks:
        return False
    batches = batches_of(benchmark, benchmark.sides[0].name)
    usual = [seconds for block in _overheads(benchmark) for seconds in block]
    if len({batch.calls for batch in batches}) > 1:
        net = [batch.wall_s - cost for batch, cost in zip(batches, usual, strict=True)]
        if not agree(_claimed(batches), slope([batch.calls for batch in batches], net)):
            return True
    if len(benchmark.sides) < 2:
        return False
    more = median(
        batch.wall_s - batch.device_s - cost for batch, cost in zip(batches, usual, strict=True)
    )
    trusted = benchmark.sides[1].name
    claimed = ratio_interval(by_events(benchmark, trusted))
    seen = ratio_interval(by_judge(benchmark, trusted))
    return more > MORE_S and seen.high * (1 + SHARE) < claimed.low


def _claimed(batches: Sequence[Batch]) -> float:
    """Return seconds of a call by the events; of one call more, if a batch had a head start.

    If the host is slower than the device, a batch takes the host's time less the head start. One
    more call takes all of the host's time, on either clock. The child's claims about its host
    excuse nothing.
    """
    line = slope([batch.calls for batch in batches], [batch.device_s for batch in batches])
    return max(median(batch.per_call_s for batch in batches), line.per_call_s)


def _overheads(benchmark: Measurements) -> list[tuple[float, ...]]:
    """Return seconds of each candidate's batch beyond its events, on the judge's clock, by block.

    A shortest batch right afterwards shows them: the same process, with its host as quick or slow.
    They count up to the overhead of the baselines' batches in the block plus `AROUND_S`.
    """
    own, longer_s = benchmark.sides[0].name, _longer(benchmark)
    names = [side.name for side in benchmark.sides[1:]]
    found = []
    for block, overheads in zip(benchmark.blocks, benchmark.overheads, strict=True):
        most = (
            median(batch.wall_s - batch.device_s for name in names for batch in block[name])
            + AROUND_S
            if names
            else math.inf
        )
        found.append(tuple(min(seconds, most) + longer_s for seconds in overheads[own]))
    return found


def _longer(benchmark: Measurements) -> float:
    """Return by how much an honest batch's overhead exceeds a shortest one's, `MORE_S` at most.

    A long batch drives clocks down and lets the host sleep longer. A baseline shows by how much, in
    the blocks that were added because the candidate was suspect.
    """
    names = [side.name for side in benchmark.sides[1:2]]
    seen = [
        batch.wall_s - batch.device_s - cost
        for block, overheads in zip(benchmark.blocks, benchmark.overheads, strict=True)
        for name in names
        for batch, cost in zip(block[name], overheads.get(name, ()), strict=False)
    ]
    return min(max(median(seen), 0.0), MORE_S) if seen else 0.0


# How much slower a baseline may be beside a candidate than without it, as a share; and the same if
# the device's power limits them, since a candidate may rightly use more power.
HINDERED = 0.03
HINDERED_CAPPED = 0.1


def was_hindered(
    benchmark: Measurements, baseline: str, alone_s: Sequence[float], *, capped: bool = False
) -> bool:
    """Return whether a baseline was slower beside the candidate than after the candidate's end.

    Batches of a kernel at the power limit scatter by some percent. Therefore three quarters of
    those beside the candidate must be slower than three quarters of those without it.

    `alone_s` are seconds of its calls in batches without the candidate; `capped` says whether the
    device was at its power's limit beside the candidate.
    """
    share = HINDERED_CAPPED if capped else HINDERED
    beside = sorted(batch.per_call_s for batch in batches_of(benchmark, baseline))
    alone = sorted(alone_s)[3 * len(alone_s) // 4]
    return beside[len(beside) // 4] > alone * (1 + share)
