"""Confirm doubtful results: claims under suspicion, and beaten baselines.

All sides share a device: work that a candidate leaves there between its batches slows the others.
So baselines are timed again when the candidate is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from kerneltruth.clock.integrity.suspicion import is_suspect, was_hindered
from kerneltruth.clock.protocol.sides import SideError
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark

# How often the blocks of a candidate are doubled before it is suspect.
MOST_DOUBLINGS = 2
# Batches of each baseline; the second number confirms what the first, few by chance fast or slow,
# has shown.
FEW_BATCHES, MORE_BATCHES = 3, 16
# Seconds until a device that was at its power limit reaches it again after a pause.
SETTLE_S = 0.3


def resolve_suspicion(
    benchmark: InterleavedBenchmark, disturbance: Callable[[], str | None] = lambda: None
) -> None:
    """Double the blocks while the judge's clock contradicts the candidate's events.

    A study times hundreds of candidates, and a busy host blurs that clock. A chance contradiction
    rarely survives more blocks; false events do. In these blocks, a baseline shows the overhead of
    an honest batch beyond its events.
    """
    for _ in range(MOST_DOUBLINGS):
        if not is_suspect(benchmark):
            break
        benchmark.suspected = True
        wanted = 2 * len(benchmark.blocks)
        benchmark.run(partial(_has_blocks, wanted), disturbance, most=wanted)


def _has_blocks(wanted: int, benchmark: InterleavedBenchmark) -> bool:
    return len(benchmark.blocks) >= wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselinesAlone:
    """Baselines without the candidate.

    Attributes:
        hindered: names of beaten baselines that are faster now.
        alone_s: seconds of a call of each beaten baseline, batch by batch; empty if one of them
            could not go on.
    """

    hindered: tuple[str, ...] = ()
    alone_s: dict[str, list[float]]


def retime_baselines(
    benchmark: InterleavedBenchmark, beaten: Sequence[str], *, capped: bool = False
) -> BaselinesAlone:
    """Time baselines of a benchmark whose candidate is gone.

    The benchmark's blocks have what baselines took beside the candidate, `capped` if the device was
    at its power's limit then; `beaten` are names of the baselines that it is about.
    """
    found = BaselinesAlone(alone_s={})
    for batches, settle_s in ((FEW_BATCHES, SETTLE_S if capped else 0.0), (MORE_BATCHES, SETTLE_S)):
        try:
            alone = benchmark.time_without_candidate(beaten, batches, settle_s=settle_s)
        except SideError:
            break
        hindered = (n for n in beaten if was_hindered(benchmark, n, alone[n], capped=capped))
        found = BaselinesAlone(hindered=tuple(hindered), alone_s=alone)
        if not found.hindered:
            break
    return found
