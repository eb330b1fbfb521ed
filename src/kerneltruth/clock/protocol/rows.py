"""Which rows of inputs a contest's calls take: spare ones, those of laps, and groups of a graph."""

from __future__ import annotations

import math

from kerneltruth.cases.philox import Stream
from kerneltruth.clock.protocol.effort import Effort

# Rows that warm up, or hold contents for sampled calls, and are never part of a measured lap: a
# graph must not hold known pointers.
SPARE = 4
MOST_ROWS = 768
# Of the slowest side's laps, unless two calls take longer.
LONGEST_S = 0.2
GROUPS = 8
# Fewer are called one by one: laps of graphs of a single call scatter twice as much.
LEAST_CAPTURED = 2 * GROUPS
# Of how many captured calls some are sampled, in so many groups at most. Where those are few, who
# leaves out one call in ten as it is captured would often get through.
CAPTURED = 128
MOST_SAMPLED_GROUPS = 4
# The id of the group whose calls share a row; the groups whose calls are sampled follow it.
WARM = GROUPS


def count_rows(effort: Effort, *, row_bytes: int, fastest_s: float, slowest_s: float = 0.0) -> int:
    """How many rows a lap has at most, so that it takes long enough and memory suffices.

    Who is thousands of times slower than others would take minutes for laps that suit those.
    """
    lap_s = effort.graph_lap_s if fastest_s < effort.graph_below_s else effort.lap_s
    wanted = math.ceil(lap_s / max(fastest_s, 1e-7))
    if wanted * slowest_s > LONGEST_S:
        wanted = max(2, int(LONGEST_S / slowest_s))
    room = effort.memory_bytes // max(row_bytes, 1)
    rows = min(wanted, room, MOST_ROWS)
    # As groups have them, or fewer, where a row more or less is much.
    possible = (
        *range(rows // GROUPS * GROUPS, LEAST_CAPTURED - 1, -GROUPS),
        *range(min(rows, LEAST_CAPTURED - 1), 1, -1),
    )
    return next((n for n in possible if count_all(n) <= room), 2)


def count_sampled_groups(size: int) -> int:
    """How many groups of so many calls are sampled: more where they are small."""
    return max(1, min(math.ceil(CAPTURED / size), MOST_SAMPLED_GROUPS))


def count_all(rows: int) -> int:
    """How many rows there are in all, with spare ones and those of the groups that are sampled."""
    if rows < LEAST_CAPTURED:
        return SPARE + rows
    size = rows // GROUPS
    return SPARE + rows + size * count_sampled_groups(size)


def groups_of(rows: int, rng: Stream) -> tuple[tuple[int, ...], ...]:
    """The rows that are captured together, by id of the group: which ones, no address tells."""
    size = rows // GROUPS
    mixed = [SPARE + i for i in shuffled(count_all(rows) - SPARE, rng)]
    count = GROUPS + count_sampled_groups(size)
    parts = [tuple(mixed[i * size : (i + 1) * size]) for i in range(count)]
    return *parts[:WARM], (0,) * size, *parts[WARM:]


def sampled_groups(rows: int) -> range:
    """Ids of the groups whose calls are sampled."""
    return range(WARM + 1, WARM + 1 + count_sampled_groups(rows // GROUPS))


def shuffled(count: int, rng: Stream) -> list[int]:
    """0 .. count - 1 in random order."""
    keys = rng.words(count).tolist()
    return sorted(range(count), key=keys.__getitem__)
