"""Smaller shapes of a case whose values are written out: a part of its tensors is kept. Pure.

A recipe draws other values at another shape, so a fault that needs a certain value may go away
where the shape alone shrinks. Here the values go along with their places.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import replace

from kerneltruth.cases.case import Case
from kerneltruth.tasks.spec import INDEX_KINDS, Task, TensorSpec, evaluate

# Up to this many indices, each one alone is kept, and each one alone is left out.
FEW = 16

Kept = tuple[int, ...]


def sliced(case: Case, task: Task) -> Iterator[Case]:
    """The case with fewer indices along one symbol, its written-out values kept where they were."""
    if not case.literals:
        return
    for symbol in sliceable(case, task):
        for kept in selections(case.sizes[symbol]):
            smaller = keep(case, task, symbol, kept)
            if smaller is not None:
                yield smaller


def sliceable(case: Case, task: Task) -> list[str]:
    """Symbols of size 2 or more that stand in tensors as plain dims and nowhere else."""
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


def selections(size: int) -> Iterator[Kept]:
    """Which indices to keep: a half, one, all but a quarter, all but one."""
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


def keep(case: Case, task: Task, symbol: str, kept: Kept) -> Case | None:
    """The case with only these indices along a symbol; None if the task has no such shape."""
    specs = {s.name: s for s in task.tensors}
    smaller = case.with_dims(**{symbol: len(kept)})
    if not kept or not task.allows(smaller.sizes, smaller.settings):
        return None
    literals = []
    for name, values in case.literals:
        spec = specs[name]
        shape = task.shape(spec, case.sizes, case.settings)
        axes = [i for i, d in enumerate(task.axes(spec, case.settings)) if d == symbol]
        part = _along(values, shape, axes, kept)
        literals.append((name, _valid(part, spec, case, smaller, (symbol, kept))))
    return replace(smaller, literals=tuple(literals))


def _along(
    values: tuple[float, ...], shape: tuple[int, ...], axes: list[int], kept: Kept
) -> tuple[float, ...]:
    """The elements whose index along each of the axes is kept, row-major."""
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
    before: Case,
    after: Case,
    cut: tuple[str, Kept],
) -> tuple[float, ...]:
    """Indices that point where they did, or at the first place if that is gone."""
    if spec.kind not in INDEX_KINDS or spec.extent is None:
        return values
    was, now = (evaluate(spec.extent, {**c.settings, **c.sizes}) for c in (before, after))
    if was == now:
        return values
    symbol, kept = cut
    if spec.other is not None:
        none = float(evaluate(spec.other, {**before.settings, **before.sizes}))
        return tuple(v if v == none else min(v, float(now - 1)) for v in values)
    if spec.extent == symbol:
        places = {float(old): float(new) for new, old in enumerate(kept)}
        return tuple(places.get(v, 0.0) for v in values)
    return tuple(min(v, float(now - 1)) for v in values)
