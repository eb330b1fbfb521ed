"""Choose how many input buffers a benchmark has, and which calls use which."""

from __future__ import annotations

import math

from kerneltruth.cases.philox import Stream
from kerneltruth.clock.protocol.effort import Effort

# Spare buffers serve warm-up and spot checks and are never part of a measured batch: a graph must
# not hold pointers that the candidate knows.
SPARE = 4
MOST_BUFFERS = 768
# A batch of the slowest side takes at most this long, unless two calls take longer.
LONGEST_BATCH_S = 0.2
GROUPS = 8
# With fewer calls, no graphs are used: batches of one-call graphs scatter twice as much.
LEAST_CAPTURED = 2 * GROUPS
# Aim to spot-check groups that hold this many captured calls together. With few checked calls, a
# candidate that skips one call in ten while it is captured would often pass.
CAPTURED = 128
MOST_CHECKED_GROUPS = 4
# The id of the group whose calls share one buffer. The spot-checked groups follow it.
WARM = GROUPS


def count_buffers(
    effort: Effort, *, buffer_bytes: int, fastest_s: float, slowest_s: float = 0.0
) -> int:
    """Return the most buffers per batch: enough for an exact time, within memory.

    The slowest side caps the batches; otherwise one slow kernel takes minutes.
    """
    batch_s = effort.graph_batch_s if fastest_s < effort.graph_below_s else effort.batch_s
    wanted = math.ceil(batch_s / max(fastest_s, 1e-7))
    if wanted * slowest_s > LONGEST_BATCH_S:
        wanted = max(2, int(LONGEST_BATCH_S / slowest_s))
    room = effort.memory_bytes // max(buffer_bytes, 1)
    buffers = min(wanted, room, MOST_BUFFERS)
    # Multiples of the number of groups; small counts are tried one by one, where each matters.
    possible = (
        *range(buffers // GROUPS * GROUPS, LEAST_CAPTURED - 1, -GROUPS),
        *range(min(buffers, LEAST_CAPTURED - 1), 1, -1),
    )
    return next((n for n in possible if count_all_buffers(n) <= room), 2)


def count_checked_groups(size: int) -> int:
    """Return how many groups of `size` calls are spot-checked: more where groups are small."""
    return max(1, min(math.ceil(CAPTURED / size), MOST_CHECKED_GROUPS))


def count_all_buffers(buffers: int) -> int:
    """Return the number of all buffers, including spare ones and those of checked groups."""
    if buffers < LEAST_CAPTURED:
        return SPARE + buffers
    size = buffers // GROUPS
    return SPARE + buffers + size * count_checked_groups(size)


def groups_of(buffers: int, rng: Stream) -> tuple[tuple[int, ...], ...]:
    """Split buffers at random into groups that are captured together, by id of the group."""
    size = buffers // GROUPS
    mixed = [SPARE + i for i in shuffled(count_all_buffers(buffers) - SPARE, rng)]
    count = GROUPS + count_checked_groups(size)
    parts = [tuple(mixed[i * size : (i + 1) * size]) for i in range(count)]
    return *parts[:WARM], (0,) * size, *parts[WARM:]


def checked_groups(buffers: int) -> range:
    """Return the ids of the spot-checked groups."""
    return range(WARM + 1, WARM + 1 + count_checked_groups(buffers // GROUPS))


def shuffled(count: int, rng: Stream) -> list[int]:
    """Return 0 .. count - 1 in random order."""
    keys = rng.words(count).tolist()
    return sorted(range(count), key=keys.__getitem__)
