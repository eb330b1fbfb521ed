"""Choose the calls of a batch that are spot-checked, and the elements kept of each.

Only the last call of a batch is graded in full. A candidate that skips a tenth of the calls would
survive a few such checks; keeping some elements of many calls is cheap. Known inputs arrive right
before the call, so that no result can be computed ahead of time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kerneltruth.cases.philox import Stream
from kerneltruth.cases.pools import Choice
from kerneltruth.clock.protocol.buffers import SPARE, shuffled
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.timing.messages import SpotCheck

# At most this many calls of a batch or captured group are checked, with this many elements of each
# output.
MOST_CALLS = 32
SPOTS = 1024
# With more calls, half are checked: a result left over from the previous call is then mostly wrong.
FEW = 8
# After the first blocks, each block is followed by a checked batch with probability one in this
# many.
EVERY = 8
# Checked calls that a batch should have; with fewer, more batches are checked.
ENOUGH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotChecked:
    """Elements kept from the checked calls.

    Attributes:
        at: the contents of each call, as they were when it was made.
        spots: of each output, which elements were kept, row-major.
        seen: of each output a tensor with a line for each call.
    """

    at: tuple[dict[str, Choice], ...]
    spots: tuple[tuple[int, ...], ...]
    seen: Observation


def sources_of(known: Sequence[object]) -> int:
    """Return how many spare buffers hold known contents for checked calls."""
    return min(len(known), SPARE)


def count_checked(calls: int) -> int:
    """Return how many of `calls` consecutive calls are checked: all of a few, else at most half."""
    return min(calls if calls < FEW else calls // 2, MOST_CALLS)


def batches_to_check(batches: int, spot_checks: int, *, blocks: int, rng: Stream) -> list[int]:
    """After which of the fewest blocks a sampled batch follows; an index for each batch.

    More batches than blocks would cost as much as the blocks, so there are as many at most.
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
    """Choose which of these calls are checked.

    Groups are rows of calls that follow each other, in the order in which they are made; known
    contents wait in `sources` spare rows.
    """
    buffers = tuple(
        group[i]
        for group in groups
        for i in sorted(shuffled(len(group), rng)[: count_checked(len(group))])
    )
    return SpotCheck(
        buffers=buffers,
        # Neighbours get different contents, so that one result cannot stand in for the next.
        sources=tuple(i % sources for i in range(len(buffers))),
        elements=elements,
        spots=tuple(
            tuple(range(n)) if n <= SPOTS else tuple(rng.integers(SPOTS, 0, n).tolist())
            for n in elements
        ),
        slot=slot,
    )
