"""How many input buffers a benchmark has, and which calls take which: batches and graphs."""

from __future__ import annotations

import math

from kerneltruth.cases.philox import Stream
from kerneltruth.clock.protocol.effort import Effort

# Rows that warm up, or hold contents for sampled calls, and are never part of a measured batch: a
# graph must not hold known pointers.
SPARE = 4
MOST_BUFFERS = 768
# Of the slowest side's batches, unless two calls take longer.
LONGEST_BATCH_S = 0.2
GROUPS = 8
# Fewer are called one by one: batches of graphs of a single call scatter twice as much.
LEAST_CAPTURED = 2 * GROUPS
# Of how many captured calls some are sampled, in so many groups at most. Where those are few, who
# leaves out one call in ten as it is captured would often get through.
CAPTURED = 128
MOST_CHECKED_GROUPS = 4
# The id of the group whose calls share a row; the groups whose calls are sampled follow it.
WARM = GROUPS


def count_buffers(
    effort: Effort, *, buffer_bytes: int, fastest_s: float, slowest_s: float = 0.0
) -> int:
    """How many rows a batch has at most, so that it takes long enough and memory suffices.

    Who is thousands of times slower than others would take minutes for batches that suit those.
    """
    batch_s = effort.graph_batch_s if fastest_s < effort.graph_below_s else effort.batch_s
    wanted = math.ceil(batch_s / max(fastest_s, 1e-7))
    if wanted * slowest_s > LONGEST_BATCH_S:
        wanted = max(2, int(LONGEST_BATCH_S / slowest_s))
    room = effort.memory_bytes // max(buffer_bytes, 1)
    buffers = min(wanted, room, MOST_BUFFERS)
    # As groups have them, or fewer, where a row more or less is much.
    possible = (
        *range(buffers // GROUPS * GROUPS, LEAST_CAPTURED - 1, -GROUPS),
        *range(min(buffers, LEAST_CAPTURED - 1), 1, -1),
    )
    return next((n for n in possible if count_all_buffers(n) <= room), 2)


def count_checked_groups(size: int) -> int:
    """How many groups of so many calls are sampled: more where they are small."""
    return max(1, min(math.ceil(CAPTURED / size), MOST_CHECKED_GROUPS))


def count_all_buffers(buffers: int) -> int:
    """How many rows there are in all, with spare ones and those of the groups that are sampled."""
    if buffers < LEAST_CAPTURED:
        return SPARE + buffers
    size = buffers // GROUPS
    return SPARE + buffers + size * count_checked_groups(size)


def groups_of(buffers: int, rng: Stream) -> tuple[tuple[int, ...], ...]:
    """The rows that are captured together, by id of the group: which ones, no address tells."""
    size = buffers // GROUPS
    mixed = [SPARE + i for i in shuffled(count_all_buffers(buffers) - SPARE, rng)]
    count = GROUPS + count_checked_groups(size)
    parts = [tuple(mixed[i * size : (i + 1) * size]) for i in range(count)]
    return *parts[:WARM], (0,) * size, *parts[WARM:]


def checked_groups(buffers: int) -> range:
    """Ids of the groups whose calls are sampled."""
    return range(WARM + 1, WARM + 1 + count_checked_groups(buffers // GROUPS))


def shuffled(count: int, rng: Stream) -> list[int]:
    """0 .. count - 1 in random order."""
    keys = rng.words(count).tolist()
    return sorted(range(count), key=keys.__getitem__)
