"""Yield simpler shapes of a failing one, in an order that reaches the smallest after few tries.

A shape here is the tuple of a task's dims. Pure: `allowed` says which shapes the task takes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Sizes = tuple[int, ...]
Allowed = Callable[[Sizes], bool]

# Every size up to here is tried, and 2^k + 1 above: blocks are powers of two, and one more than a
# block is the first size that reaches a second one.
EVERY_SIZE = 8
# A swept shape costs an evaluation and seldom fails, but nothing else finds a fault that first
# shows at, say, 11. 32 shapes are all sizes to 32 in one dim, all products to 10 in two. The sweep
# takes at most this share of a budget: one part in `SWEPT_SHARE`.
SWEPT = 32
SWEPT_SHARE = 5


def order(sizes: Sizes) -> tuple[Any, ...]:
    """Sort shapes: fewest empty dims, then fewest elements, then lexicographic.

    An ordinary tensor is simpler than an empty one, so an empty dim stays only if the fault needs
    it; empty dims do not hide how large the others are.
    """
    return (sizes.count(0), math.prod(n for n in sizes if n), sizes)


def grid(blocks: Iterable[int] = ()) -> Iterator[int]:
    """Yield sizes worth trying first, ascending and endless."""
    yield from range(1, EVERY_SIZE + 1)
    extra = sorted({b + 1 for b in blocks if b >= EVERY_SIZE})
    power = EVERY_SIZE
    while True:
        yield from sorted({power + 1, *(n for n in extra if power + 1 < n < 2 * power + 1)})
        power *= 2


def lower_sizes(size: int, blocks: Iterable[int] = ()) -> Iterator[int]:
    """Yield sizes smaller than `size`: the grid, a bisection, then the same remainder.

    The bisection halves a cell of the fixed grid, so after each success it continues where it was.
    A size with the same remainder modulo a power of two keeps failing if the fault is in a tail (`N
    % 256 == 1`), which a bisection steps over.
    """
    low = 0
    for n in grid(blocks):
        if n >= size:
            high = n
            break
        yield n
        low = n
    while high - low > 1:
        middle = (low + high) // 2
        if middle >= size:
            high = middle
        else:
            yield middle
            low = middle
    for k in reversed(range(size.bit_length())):
        if size - 2**k > 0:
            yield size - 2**k


def floored(sizes: Sizes, allowed: Allowed) -> Iterator[Sizes]:
    """Yield all dims at their least but none, one or two: most faults need only one large dim."""
    indices = range(len(sizes))
    for kept_count in range(min(len(sizes), 2 if len(sizes) > 3 else 3)):
        for kept in itertools.combinations(indices, kept_count):
            # A constraint (a group count, a window that must fit) may rule out 1.
            tries = (
                tuple(n if i in kept else min(n, least) or least for i, n in enumerate(sizes))
                for least in range(1, 5)
            )
            first = next((t for t in tries if allowed(t)), None)
            if first is not None:
                yield first


def lowered(sizes: Sizes, index: int, allowed: Allowed, blocks: Iterable[int]) -> Iterator[Sizes]:
    """Yield shapes with one dim smaller; an empty one becomes 1."""
    size = sizes[index]
    for n in lower_sizes(size, blocks) if size else (1,):
        changed = (*sizes[:index], n, *sizes[index + 1 :])
        if allowed(changed):
            yield changed


def together(sizes: Sizes, allowed: Allowed) -> Iterator[Sizes]:
    """Make two dims, or all, smaller at once, keeping their ratio or their difference.

    For faults and constraints that tie dims together, so that no single one can change.
    """
    indices = [i for i, n in enumerate(sizes) if n > 0]
    groups: list[tuple[int, ...]] = list(itertools.combinations(indices, 2))
    if len(indices) > 2:
        groups.append(tuple(indices))
    for group in groups:
        common = math.gcd(*(sizes[i] for i in group))
        least = min(sizes[i] for i in group)
        changes = [{i: sizes[i] // common * v for i in group} for v in _few(common)]
        changes += [{i: sizes[i] - (least - v) for i in group} for v in _few(least)]
        for change in changes:
            changed = tuple(change.get(i, n) for i, n in enumerate(sizes))
            if allowed(changed):
                yield changed


def _few(size: int, most: int = 8) -> list[int]:
    lower = list(itertools.islice((n for n in lower_sizes(size) if n not in (3, 6, 7)), most))
    return list(dict.fromkeys([*lower, *([size - 1] if size > 1 else [])]))


def traded(sizes: Sizes, allowed: Allowed) -> Iterator[Sizes]:
    """Make one dim smaller and another larger: as many elements in an earlier shape, or fewer.

    For faults that need a certain number of elements, which one dim meets more exactly than two.
    """
    elements = math.prod(n for n in sizes if n)
    indices = [i for i, n in enumerate(sizes) if n > 0]
    for i, j in itertools.permutations(indices, 2):
        both = sizes[i] * sizes[j]
        if i < j:
            factors = (n for n in range(1, sizes[i]) if both % n == 0)
            equal = (_with(sizes, {i: n, j: both // n}) for n in factors)
            yield from itertools.islice(filter(allowed, equal), 6)
        others = elements // both
        for n in range(1, min(sizes[i], 4)):
            most = (elements - 1) // (others * n)
            if most > sizes[j]:
                yield from filter(allowed, [_with(sizes, {i: n, j: most})])


def swept(sizes: Sizes, allowed: Allowed, most: int) -> Iterator[Sizes]:
    """Yield the `most` smallest shapes in order: guarantees the least among them."""
    if 0 in sizes:
        return
    found = 0
    elements = math.prod(sizes)
    for product in range(1, min(elements, 4 * most) + 1):
        for shape in _factored(product, len(sizes)):
            if found >= most or order(shape) >= order(sizes):
                return
            if allowed(shape):
                found += 1
                yield shape


def _factored(product: int, count: int) -> Iterator[Sizes]:
    """Yield every tuple of `count` sizes with that product, in lexicographic order."""
    if count == 0:
        if product == 1:
            yield ()
        return
    for n in range(1, product + 1):
        if product % n == 0:
            yield from ((n, *rest) for rest in _factored(product // n, count - 1))


def _with(sizes: Sizes, change: dict[int, int]) -> Sizes:
    return tuple(change.get(i, n) for i, n in enumerate(sizes))
