"""Free ranges of the memory that judge and child share; both give it out alike."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

# Each piece begins at a multiple.
ALIGNMENT = 512


class Gaps:
    """Ranges that are free, lowest first."""

    def __init__(self, ranges: Sequence[int]) -> None:
        """Begin with ranges, each as its first byte and its end, at multiples of the alignment."""
        self._ranges = [list(pair) for pair in zip(ranges[::2], ranges[1::2], strict=True)]

    @classmethod
    def beside(cls, taken: Iterable[tuple[int, int]], size: int) -> Gaps:
        """Return the gaps that taken ranges leave in `size` bytes of memory."""
        free, start = [], 0
        for first, end in sorted(taken):
            whole = first - first % ALIGNMENT
            if whole > start:
                free += [start, whole]
            start = max(start, end + -end % ALIGNMENT)
        return cls([*free, start, size] if start < size else free)

    def take(self, size: int) -> int | None:
        """Take a piece from the first range with room, and return where it begins."""
        size += -size % ALIGNMENT
        for free in self._ranges:
            if free[1] - free[0] >= size:
                free[0] += size
                return free[0] - size
        return None

    def left(self) -> tuple[int, ...]:
        """Return the ranges that are left."""
        return tuple(end for free in self._ranges if free[0] < free[1] for end in free)

    @property
    def free(self) -> int:
        """Return how many bytes are left."""
        return sum(end - start for start, end in self._ranges)


class Taken:
    """Ranges that are not free; they may overlap."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(ranges):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            elif start < end:
                self._starts.append(start)
                self._ends.append(end)

    def meet(self, start: int, end: int) -> bool:
        """Return whether a range shares a byte with them."""
        at = bisect_right(self._starts, max(start, end - 1)) - 1
        return start < end and at >= 0 and self._ends[at] > start
