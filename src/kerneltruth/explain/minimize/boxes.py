"""Shrink a case whose values are written out by keeping a part of its tensors. Pure.

A recipe draws other values at another shape, so a fault that needs a certain value may vanish when
only the shape shrinks. Here the values move along with their places.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec.structs import replace

from kerneltruth.documents.case import Case
from kerneltruth.tasks.spec import INDEX_KINDS, Scope, Task, TensorSpec, evaluate

# Up to this many indices, each one alone is kept, and each one alone is left out.
FEW = 16
# At most this many nonzero values of each tensor are kept in a smaller form.
_PLACES = 3

KeptPlaces = tuple[int, ...]


def sliced(case: Case, task: Task) -> Iterator[Case]:
    """Yield the case with fewer indices along one symbol; values move with their places."""
    if not case.literals:
        return
    for symbol in sliceable(case, task):
        for kept in selections(case.sizes[symbol]):
            smaller = keep(case, task, symbol, kept)
            if smaller is not None:
                yield smaller


def sliceable(case: Case, task: Task) -> list[str]:
    """Return symbols of size 2 or more that occur in tensors as plain dims and nowhere else."""
    present = [s for s in task.tensors if s.name not in case.absent]
    plain = {d for s in present for d in task.axes(s, case.settings)}
    inside = {
        word
        for s in present
        for d in task.axes(s, case.settings)
        if d not in case.sizes
        for word in re.findall(r"\w+", d)
    }
    return [n for n, size in case.dims if size >= 2 and n in plain and n not in inside]


def selections(size: int) -> Iterator[KeptPlaces]:
    """Yield which indices to keep: a half, one, all but a quarter, all but one."""
    everything = tuple(range(size))
    half = (size + 1) // 2
    yield everything[:half]
    yield everything[half:]
    if 2 < size <= FEW:
        yield from ((i,) for i in everything)
    if size > 4:
        quarter = -(-size // 4)
        for start in range(0, size, quarter):
            yield everything[:start] + everything[start + quarter :]
    if 2 < size <= FEW:
        yield from (everything[:i] + everything[i + 1 :] for i in everything)


def keep(case: Case, task: Task, symbol: str, kept: KeptPlaces) -> Case | None:
    """Keep only these indices along a symbol; None if the task has no such shape."""
    specs = {s.name: s for s in task.tensors}
    smaller = case.with_dims(**{symbol: len(kept)})
    if not kept or not task.allows(smaller.sizes, smaller.settings):
        return None
    scopes = (
        task.scope(case.sizes, case.settings),
        task.scope(smaller.sizes, smaller.settings),
    )
    literals = []
    for name, values in case.literals:
        spec = specs[name]
        shape = task.shape(spec, case.sizes, case.settings)
        axes = [i for i, d in enumerate(task.axes(spec, case.settings)) if d == symbol]
        part = _along(values, shape, axes, kept)
        literals.append((name, _valid(part, spec, scopes, (symbol, kept))))
    return replace(smaller, literals=tuple(literals))


def moved(case: Case, smaller: Case, task: Task) -> Iterator[Case]:
    """Yield the case in smaller shapes, with a part of its written-out values in their places.

    Dims of one size that shrink to one size are cut alike. The parts tried are the first, the last,
    and those with one of the first few nonzero values.
    """
    given = dict(case.literals)
    specs = [s for s in task.tensors if s.name in given]
    before = {s.name: task.shape(s, case.sizes, case.settings) for s in specs}
    after = {s.name: task.shape(s, smaller.sizes, smaller.settings) for s in specs}
    if any(len(before[n]) != len(after[n]) for n in before):
        return
    cuts = {cut for n in before for cut in zip(before[n], after[n], strict=True)}
    if any(now > was for was, now in cuts):
        return
    starts = [dict.fromkeys(cuts, 0), {(was, now): was - now for was, now in cuts}]
    for name, values in case.literals:
        places = (i for i, v in enumerate(values) if v != 0.0)
        for place in itertools.islice(places, _PLACES):
            at = tuple(map(int, np.unravel_index(place, before[name])))
            here = zip(zip(before[name], after[name], strict=True), at, strict=True)
            starts.append(starts[0] | {c: min(i, c[0] - c[1]) for c, i in here})
    for start in {tuple(sorted(s.items())): s for s in starts}.values():
        literals = []
        for spec in specs:
            part = _window(given[spec.name], before[spec.name], after[spec.name], start)
            if spec.extent is not None:
                last = evaluate(spec.extent, task.scope(smaller.sizes, smaller.settings)) - 1
                part = tuple(min(v, float(last)) for v in part)
            literals.append((spec.name, part))
        yield replace(smaller, literals=tuple(literals))


def _window(
    values: tuple[float, ...],
    before: tuple[int, ...],
    after: tuple[int, ...],
    start: Mapping[tuple[int, int], int],
) -> tuple[float, ...]:
    """Return the elements of a part of a tensor, row-major."""
    steps = [math.prod(before[i + 1 :]) for i in range(len(before))]
    begins = [start[cut] for cut in zip(before, after, strict=True)]
    ranges = (range(b, b + n) for b, n in zip(begins, after, strict=True))
    return tuple(
        values[sum(i * step for i, step in zip(index, steps, strict=True))]
        for index in itertools.product(*ranges)
    )


def _along(
    values: tuple[float, ...], shape: tuple[int, ...], axes: list[int], kept: KeptPlaces
) -> tuple[float, ...]:
    """Return the elements whose index along each of the axes is kept, row-major."""
    if not axes:
        return values
    choices = [kept if i in axes else range(n) for i, n in enumerate(shape)]
    steps = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return tuple(
        values[sum(i * step for i, step in zip(index, steps, strict=True))]
        for index in itertools.product(*choices)
    )


def _valid(
    values: tuple[float, ...],
    spec: TensorSpec,
    scopes: tuple[Scope, Scope],
    cut: tuple[str, KeptPlaces],
) -> tuple[float, ...]:
    """Remap indices to the same elements, or to the first place if an element is gone."""
    if spec.kind not in INDEX_KINDS or spec.extent is None:
        return values
    was, now = (evaluate(spec.extent, scope) for scope in scopes)
    if was == now:
        return values
    symbol, kept = cut
    if spec.other is not None:
        none = float(evaluate(spec.other, scopes[0]))
        return tuple(v if v == none else min(v, float(now - 1)) for v in values)
    if spec.extent == symbol:
        places = {float(old): float(new) for new, old in enumerate(kept)}
        return tuple(places.get(v, 0.0) for v in values)
    return tuple(min(v, float(now - 1)) for v in values)
