"""The least and the longest sizes of a problem, around the sets that a search has found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kerneltruth.suites.kernelbench.constants import Slot
from kerneltruth.suites.kernelbench.search import (
    PREFERRED,
    Found,
    Search,
    SearchBudget,
    cost,
    put_all,
)

# The limits of a set with one long size.
LONG = SearchBudget(elements=2**17, weights=2**17, flops=2**26)
# The sizes and the most sets to show a fault in.
_LEAST = (1, 2, 3, 4, 5, 8)
_SMALLEST = 12
# Beyond each of these is a size at which a table, a block or a grid may end; the steps beyond it
# suit a size that must be even, or a multiple.
_LONG = (1024, 512, 256, 128)
_STEPS = (1, 2, 4, 8, 16, 32, 64)
# The other sizes beside a long one: few, so that it is affordable.
_FEW = (2, 3, 4, 5, 8, 1)


def smallest(search: Search) -> list[Found]:
    """Return the least sizes, alone and beside a larger one, to show a fault in.

    Empty for a problem that cannot be made small.
    """
    base = search.base
    if base is None:
        return []
    least = _reduced(search, base, _LEAST)
    found = [least]
    for slot in search.sizes:
        values = (2, 3, slot.get(base.constants))
        found += [made for n in values if (made := _moved(search, least, slot, n)) is not None]
    by_shape = {f.outline.shapes: f for f in found}
    return sorted(by_shape.values(), key=lambda f: cost(f.outline))[:_SMALLEST]


def long(search: Search) -> list[Found]:
    """Return each size that the found sets move far beyond the ordinary, the others few.

    A kernel may be right up to some size, such as its block or the length of a table. A size that
    adds rows comes twice, as far as is affordable and just beyond 128: an interpreter may run a
    program for each row. Empty for a problem that cannot be made small.
    """
    base = search.base
    if base is None:
        return []
    few, least = (_reduced(search, base, values) for values in (_FEW, _LEAST))
    moving = [s for s in search.sizes if len({s.get(f.constants) for f in search.found}) > 1]
    made = (m for slot in moving for m in _lengthened(search, few, least, slot))
    known = {f.outline.shapes for f in search.found}
    return list({m.outline.shapes: m for m in made if m.outline.shapes not in known}.values())


def _lengthened(search: Search, few: Found, least: Found, slot: Slot) -> Iterator[Found]:
    """Yield the set with the longest size here; for rows, also the least beyond 128."""
    longest = _beyond(search, few, slot, _LONG)
    if longest is not None:
        yield longest
        if longest.outline.rows > few.outline.rows:
            yield _beyond(search, least, slot, _LONG[-1:]) or longest


def _beyond(search: Search, start: Found, slot: Slot, limits: Sequence[int]) -> Found | None:
    """Return the set with a size beyond the first of the limits that is affordable.

    Where the problem refuses it alone, equal constants of the file change with it.
    """
    alike = [s for s in search.sizes if s.value == slot.value]
    for group in ([slot], alike) if len(alike) > 1 else ([slot],):
        for limit in limits:
            tries = (put_all(start.constants, group, limit + step) for step in _STEPS)
            accepted = (search.accepted(constants, start) for constants in tries)
            made = next((m for m in accepted if m is not None), None)
            if made is not None and LONG.holds(made.outline):
                return made
    return None


def _reduced(search: Search, start: Found, values: Sequence[int]) -> Found:
    """Return the set with each size in turn at the first of the values that is accepted."""
    for slot in search.sizes:
        now = slot.get(start.constants)
        smaller = (_moved(search, start, slot, n) for n in values if n <= now)
        start = next((made for made in smaller if made is not None), start)
    return start


def _moved(search: Search, start: Found, slot: Slot, value: int) -> Found | None:
    made = search.accepted(slot.put(start.constants, value), start)
    return made if made is not None and PREFERRED.holds(made.outline) else None
