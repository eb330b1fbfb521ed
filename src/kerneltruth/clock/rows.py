"""Which rows of inputs a contest's calls take: spare ones, those of laps, and groups of a graph."""

from __future__ import annotations

import math

from kerneltruth.cases.philox import Stream
from kerneltruth.clock.contestants import Effort

# Rows that warm up, or hold contents for sampled calls, and are never part of a measured lap: a
# graph must not hold known pointers.
SPARE = 4
MOST_ROWS = 768
GROUPS = 8
# Ids of the groups whose calls share a row, and whose calls are sampled.
WARM, SAMPLES = GROUPS, GROUPS + 1


def count_rows(effort: Effort, *, row_bytes: int, fastest_s: float) -> int:
    """How many rows a lap has at most, so that it takes long enough and memory suffices."""
    # A captured call takes less than the launch that the warm-up saw.
    quick = 3.0 if fastest_s < effort.graph_below_s else 1.0
    wanted = math.ceil(quick * effort.lap_s / max(fastest_s, 1e-7))
    room = (effort.memory_bytes // max(row_bytes, 1) - SPARE) * GROUPS // (GROUPS + 1)
    rows = max(2, min(wanted, room, MOST_ROWS))
    return rows // GROUPS * GROUPS if rows >= 2 * GROUPS else rows


def count_all(rows: int) -> int:
    """How many rows there are in all, with spare ones and those of the group that is sampled."""
    return SPARE + rows + rows // GROUPS


def groups_of(rows: int, rng: Stream) -> tuple[tuple[int, ...], ...]:
    """The rows that are captured together, by id of the group: which ones, no address tells."""
    size = rows // GROUPS
    mixed = [SPARE + i for i in shuffled(rows + size, rng)]
    parts = [tuple(mixed[i : i + size]) for i in range(0, len(mixed), size)]
    return *parts[:WARM], (0,) * size, *parts[WARM:]


def shuffled(count: int, rng: Stream) -> list[int]:
    """0 .. count - 1 in random order."""
    keys = rng.words(count).tolist()
    return sorted(range(count), key=keys.__getitem__)
