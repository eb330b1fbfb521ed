"""Which calls of a batch are sampled, and what is kept of them.

A batch is shown by its last call only. Whoever leaves out a tenth of the calls would get through a
few such looks; some elements of many calls are cheap to look at. Their inputs arrive right before
the call, so that nobody can have computed their results together with others beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kerneltruth.cases.philox import Stream
from kerneltruth.cases.pools import Choice
from kerneltruth.clock.protocol.buffers import SPARE, shuffled
from kerneltruth.runner.protocol import Observation
from kerneltruth.runner.timing.messages import SpotCheck

# How many calls of a batch, or of a group that is captured, are sampled, and how many elements of
# each output are kept, at most.
MOST_CALLS = 32
SPOTS = 1024
# Of more calls half are sampled: a result that stayed from the call before is then wrong, mostly.
FEW = 8
# After the fewest blocks every so-manieth one, at random, is followed by a sampled batch.
EVERY = 8
# How many calls a batch is to have sampled; where they are fewer, more batches are.
ENOUGH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotChecked:
    """Some elements of what sampled calls gave.

    Attributes:
        at: the contents of each call, as they were when it was made.
        spots: of each output, which elements were kept, row-major.
        seen: of each output a tensor with a line for each call.
    """

    at: tuple[dict[str, Choice], ...]
    spots: tuple[tuple[int, ...], ...]
    seen: Observation


def sources_of(known: Sequence[object]) -> int:
    """In how many spare rows known contents wait for the calls that are sampled."""
    return min(len(known), SPARE)


def count_checked(calls: int) -> int:
    """How many of so many calls in a row are sampled: of few all of them, else at most half."""
    return min(calls if calls < FEW else calls // 2, MOST_CALLS)


def batches_to_check(batches: int, spot_checks: int, *, blocks: int, rng: Stream) -> list[int]:
    """After which of the fewest blocks a sampled batch follows; an index for each batch.

    Args:
        batches: how many, if each has `ENOUGH` calls sampled.
        spot_checks: checked calls of a batch.
        blocks: the fewest there are: so many batches at most, or they would cost as much as these.
        rng: which.
    """
    wanted = math.ceil(batches * ENOUGH / spot_checks)
    return rng.integers(min(max(batches, wanted), max(batches, blocks)), 0, blocks).tolist()


def spot_check_of(
    groups: Sequence[Sequence[int]],
    *,
    elements: tuple[int, ...],
    sources: int,
    slot: int,
    rng: Stream,
) -> SpotCheck:
    """Sample some of these calls.

    Args:
        groups: rows of calls that follow each other, in the order in which they are made.
        elements: how many each output has.
        sources: in how many spare rows known contents wait.
        slot: of the benchmark.
        rng: which calls and which elements.
    """
    buffers = tuple(
        group[i]
        for group in groups
        for i in sorted(shuffled(len(group), rng)[: count_checked(len(group))])
    )
    return SpotCheck(
        buffers=buffers,
        # Neighbours get different contents: one's result must not do for the other.
        sources=tuple(i % sources for i in range(len(buffers))),
        elements=elements,
        spots=tuple(
            tuple(range(n)) if n <= SPOTS else tuple(rng.integers(SPOTS, 0, n).tolist())
            for n in elements
        ),
        slot=slot,
    )
