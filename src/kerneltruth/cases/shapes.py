"""Choose sizes worth trying for a dim, and fit them to a task.

On the CPU an interpreter runs every program of a launch, so shapes there keep the likely number of
programs small: few rows, and long dims one at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from kerneltruth.tasks.spec import INDEX_KINDS, Dim, Scalar, Task, TensorSpec, evaluate

Device = Literal["cpu", "cuda"]
DimSizes = dict[str, int]
AttributeSettings = Mapping[str, Scalar]

PUBLISHED = (1025, 3, 256, 7, 1)
AROUND_POWERS = (2, 15, 17, 31, 33, 63, 65, 127, 129, 255, 257, 511, 513, 1023, 1024)
POWERS = (256, 64, 16, 128, 32, 1024, 8, 512, 4, 2, 1)
FEW = (3, 2, 5, 4, 6, 7)

AxisKind = Literal["batch", "inner", "wide", "deep", "contracted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A dim as a source of sizes.

    `kind` is what its size costs: `batch` a program per element; `inner` and `wide` a program per
    tile; `deep` a part of a higher-rank tensor; `contracted` a loop.
    """

    symbol: str
    kind: AxisKind
    low: int
    cap: int
    may_be_empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLimits:
    """The cost limits of a case.

    Attributes:
        elements: of the largest input.
        rows: product of the batch dims of one tensor.
        lead: product of all but the last dim of a tensor of rank 3 or more.
        work: product of all dims.
    """

    elements: int
    rows: int
    lead: int
    work: int


# The cost limits of an ordinary case.
LIMITS: dict[Device, SizeLimits] = {
    "cpu": SizeLimits(elements=4096, rows=8, lead=96, work=2**18),
    "cuda": SizeLimits(elements=2**14, rows=1025, lead=512, work=2**19),
}
# The benchmark's own inputs are one case, so they may cost what two ordinary ones do.
PUBLISHED_LIMITS: dict[Device, SizeLimits] = {
    "cpu": SizeLimits(elements=2**12, rows=16, lead=128, work=2**18),
    "cuda": SizeLimits(elements=2**22, rows=2**16, lead=2**16, work=2**28),
}
# How many times the cost of the smallest case an ordinary one may have, if that is large itself.
_A_FEW = 8
_CAPS: dict[Device, dict[str, int]] = {
    "cpu": {"batch": 7, "inner": 129, "wide": 1025, "contracted": 130, "deep": 65, "deeper": 33},
    "cuda": {
        "batch": 1025,
        "inner": 257,
        "wide": 2049,
        "contracted": 257,
        "deep": 129,
        "deeper": 65,
    },
}
_BLOCKS: dict[AxisKind, tuple[int, ...]] = {
    "batch": (4, 2),
    "inner": (32, 64, 16, 128),
    "wide": (128, 1024, 256, 64, 512),
    "deep": (16, 8, 32),
    "contracted": (32, 16, 64, 128),
}


# Sizes that a block may get wrong: a number of blocks, and a number of further elements.
_NEAR_BLOCKS = ((1, 1), (1, -1), (2, 1), (1, 0))


def axes(task: Task, device: Device) -> tuple[Axis, ...]:
    """Return the task's dims as sources of sizes."""
    found = []
    for dim in task.dims:
        kind, name = _kind(task, dim)
        low = max(dim.low, 1)
        cap = max(_CAPS[device][name], low)
        found.append(
            Axis(
                symbol=dim.symbol,
                kind=kind,
                low=low,
                cap=cap if dim.most is None else min(cap, dim.most),
                may_be_empty=dim.low == 0,
            )
        )
    return tuple(found)


def _kind(task: Task, dim: Dim) -> tuple[AxisKind, str]:
    """Return the axis kind of a dim, and the name of its cap."""
    word = re.compile(rf"\b{re.escape(dim.symbol)}\b")
    places = [
        (len(spec.usual), position)
        for spec in task.tensors
        for position, expression in enumerate(spec.usual)
        if word.search(expression)
    ]
    rank = max((r for r, _ in places), default=0)
    last = any(position == r - 1 for r, position in places)
    if dim.role == "contracted":
        return "contracted", "contracted"
    if dim.role == "batch":
        if (
            places
            and all(r == 1 for r, _ in places)
            and all(s.kind not in INDEX_KINDS for s in task.tensors)
        ):
            return "wide", "wide"
        tiled = task.contracted() and any(r == 2 and p == 0 for r, p in places)
        return ("inner", "inner") if tiled else ("batch", "batch")
    if dim.role == "reduced" and (rank <= 2 or last):
        return "wide", "wide"
    if 1 <= rank <= 2:
        return ("wide", "wide") if last else ("inner", "inner")
    return "deep", "deep" if rank == 3 else "deeper"


def elementwise(task: Task) -> bool:
    """Return whether nothing is reduced and no tensor has a rank over 2: large ones are cheap."""
    roles = {d.role for d in task.dims}
    return not roles & {"reduced", "contracted"} and widest(task) <= 2


def widest(task: Task) -> int:
    """Return the most dims that a tensor of the task has at the default attributes."""
    return max((len(s.usual) for s in task.tensors), default=0)


def boundary_sizes(axis: Axis) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the published boundary sizes of an axis, then those around powers of two."""
    first = [n for n in PUBLISHED if axis.low <= n <= axis.cap]
    if axis.kind == "batch":
        first += [n for n in (2, 5) if axis.low <= n <= axis.cap]
    rest = [n for n in (*AROUND_POWERS, axis.low, axis.cap) if axis.low <= n <= axis.cap]
    return tuple(dict.fromkeys(first)), tuple(n for n in dict.fromkeys(rest) if n not in first)


def regular_sizes(axis: Axis) -> tuple[int, ...]:
    """Return powers of two for an axis."""
    return tuple(n for n in POWERS if axis.low <= n <= axis.cap) or (axis.low,)


def tile_sizes(axis: Axis, blocks: tuple[int, ...], task: Task) -> tuple[int, ...]:
    """Return sizes one past, one short of, one past twice, and at each block size."""
    reach = 2 * axis.cap + 1
    if axis.kind == "batch":
        reach = 33
    if axis.kind == "wide":
        reach = 2**15 if elementwise(task) else 4 * axis.cap
    known = sorted({b for b in blocks if b >= 2}, key=lambda b: (b & (b - 1) != 0, b))[:6]
    chosen = known or _BLOCKS[axis.kind]
    sizes = [times * b + more for times, more in _NEAR_BLOCKS for b in chosen]
    high = min(reach, task.dim(axis.symbol).most or reach)
    fitting = tuple(dict.fromkeys(n for n in sizes if axis.low <= n <= high))
    return fitting or boundary_sizes(axis)[0] or (axis.low,)


def reach(axis: Axis, task: Task, device: Device) -> int:
    """Return the largest size of one dim, others small, at the cost of a few cases.

    A kernel may branch from some size up to there.
    """
    cuda = device == "cuda"
    if axis.kind == "wide" and elementwise(task):
        most = 2**18 if cuda else 2**16
    elif axis.kind in ("wide", "contracted"):
        most = 2**14 if cuda else 4 * axis.cap
    else:
        most = 2**11 if cuda else axis.cap
    return min(most + 1, task.dim(axis.symbol).most or most + 1)


def large_sizes(task: Task, found: tuple[Axis, ...], device: Device) -> Iterator[DimSizes]:
    """Return sizes beyond the ordinary, one dim at a time: a grid or loop may be too short."""
    small = {a.symbol: min(max(3, a.low), a.cap) for a in found}
    cuda = device == "cuda"
    for axis in found:
        high = task.dim(axis.symbol).most
        if axis.kind == "wide" and elementwise(task):
            rows = prod(small[a.symbol] for a in found if a is not axis)
            size = (2**18 if cuda else 2**16) // rows + 2
        elif axis.kind == "wide" and not task.contracted():
            size = 8195 if cuda else 4099
        elif axis.kind == "contracted":
            size = 2051 if cuda else 1025
        elif axis.kind == "batch" and widest(task) <= 2:
            size = 1027 if cuda else 129
        else:
            continue
        if high is None or size <= high:
            yield small | {axis.symbol: size}


def within(
    task: Task,
    found: tuple[Axis, ...],
    sizes: DimSizes,
    settings: AttributeSettings,
    limits: SizeLimits,
) -> bool:
    """Return whether a case of these sizes costs no more than the limits allow."""
    batch = {a.symbol for a in found if a.kind == "batch"}
    # Large dims of one size have a fixed cost; a few rows of them are still ordinary.
    least = {a.symbol: a.low for a in found} if any(a.low > 64 for a in found) else None
    work = limits.work if least is None else max(limits.work, _A_FEW * prod(least.values()))
    if prod(max(n, 1) for n in sizes.values()) > work:
        return False
    for spec in task.tensors:
        shape = _shape(task, spec, sizes, settings)
        if shape is None:
            continue
        smallest = None if least is None else _shape(task, spec, least, settings)
        if prod(shape) > max(limits.elements, _A_FEW * prod(smallest) if smallest else 0):
            return False
        if prod(max(sizes[s], 1) for s in spec.usual if s in batch) > limits.rows:
            return False
        if len(shape) >= 3 and prod(shape[:-1]) > limits.lead:
            return False
    return True


def shrink(
    sizes: DimSizes,
    found: tuple[Axis, ...],
    keep: str | None,
    fits: Callable[[DimSizes], bool],
    *,
    odd: bool = True,
) -> DimSizes:
    """Halve the largest dims (to odd sizes) until the case fits; `keep` stays as it is."""
    sizes = dict(sizes)
    movable = [a for a in found if a.symbol != keep]
    while not fits(sizes):
        largest = max(movable, key=lambda a: sizes[a.symbol] / a.low, default=None)
        if largest is None or sizes[largest.symbol] <= largest.low:
            return sizes
        half = sizes[largest.symbol] // 2
        sizes[largest.symbol] = max(largest.low, (half - 1) | 1 if odd else half)
    return sizes


def _shape(
    task: Task, spec: TensorSpec, sizes: DimSizes, settings: AttributeSettings
) -> tuple[int, ...] | None:
    try:
        return task.shape(spec, sizes, settings)
    except (ArithmeticError, TypeError, IndexError):
        return None


def violations(
    task: Task, sizes: DimSizes, settings: AttributeSettings, *, empty: bool = False
) -> int:
    """Count the rules of the task that the sizes break; empty tensors count unless `empty`."""
    scope = task.scope(sizes, settings)
    broken = 0
    for dim in task.dims:
        n = sizes[dim.symbol]
        broken += n < dim.low or (dim.high is not None and n > dim.high)
    for constraint in task.constraints:
        try:
            broken += not evaluate(constraint, scope)
        except (ZeroDivisionError, TypeError):
            broken += 1
    if broken:
        return broken
    for spec in task.tensors:
        shape = _shape(task, spec, sizes, settings)
        least = 0 if empty else 1
        if shape is None or any(n < least for n in shape):
            broken += 1
            continue
        no_index = spec.extent and prod(shape) and evaluate(spec.extent, scope) < 1
        broken += bool(no_index)
    return broken


def repair(
    task: Task,
    found: tuple[Axis, ...],
    sizes: DimSizes,
    settings: AttributeSettings,
    keep: str | None,
) -> DimSizes | None:
    """Return the nearest allowed sizes, found by moving one dim at a time, or None.

    `keep` moves only when no other dim helps.
    """
    sizes = dict(sizes)
    broken = violations(task, sizes, settings)
    for _ in range(6):
        if not broken:
            return sizes
        best: tuple[int, bool, int] | None = None
        chosen = sizes
        for axis in found:
            for size in _nearby(axis, sizes):
                moved = sizes | {axis.symbol: size}
                score = (
                    violations(task, moved, settings),
                    axis.symbol == keep,
                    abs(size - sizes[axis.symbol]),
                )
                if best is None or score < best:
                    best, chosen = score, moved
        if best is None or best[0] >= broken:
            return None
        sizes, broken = chosen, best[0]
    return None


def _nearby(axis: Axis, sizes: DimSizes) -> tuple[int, ...]:
    n = sizes[axis.symbol]
    steps = [n + d for d in (1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8)]
    candidates = [*steps, *sizes.values(), *POWERS, axis.low]
    high = max(axis.cap, n)
    return tuple(c for c in dict.fromkeys(candidates) if axis.low <= c <= high and c != n)
