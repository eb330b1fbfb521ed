"""Simplify a case's literal values: towards 0 and 1, then towards round numbers. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from kerneltruth.documents.case import Case
from kerneltruth.tasks.arguments import KEPT_DTYPES, PARTS
from kerneltruth.tasks.spec import INDEX_KINDS, MATRIX_KINDS, ROW_KINDS, Task

# Above this many elements a recipe draws the values: no reader looks at more.
MOST_LITERALS = 64

_ROUND = (2.0, 10.0, 100.0, 1000.0)
_FIXED = (*INDEX_KINDS, *ROW_KINDS, *MATRIX_KINDS, "sign")
_ROUNDED = ("real", "positive", "negative", "probability", "unit", *KEPT_DTYPES)
_LOWEST = {"positive": 1.0, "mask": 1.0}
_HIGHEST = {"negative": 0.0}


def complexity(value: float) -> tuple[Any, ...]:
    """Sort numbers: 0, 1, -1, then by significant digits, then inf and NaN."""
    if value == 0:
        return (0, 0, 0.0, math.copysign(1.0, value) < 0)
    if value in (1.0, -1.0):
        return (1, 0, 0.0, value < 0)
    if math.isfinite(value):
        digits = repr(abs(float(value))).partition("e")[0]
        significant = len(digits.replace(".", "").strip("0"))
        return (2, significant, abs(value), value < 0)
    return (3, 0, 0.0, value < 0) if math.isinf(value) else (4, 0, 0.0, False)


def order(case: Case) -> tuple[Any, ...]:
    """Sort literals: fewest other than 0 and 1, fewest other than 0, then element by element.

    Numbers that a reader sees are simpler than a recipe, which comes last in `cases.key`.
    """
    values = [v for _, tensor in case.literals for v in tensor]
    return (
        sum(v not in (0.0, 1.0) for v in values),
        sum(v != 0.0 for v in values),
        tuple((name, len(tensor)) for name, tensor in case.literals),
        tuple(complexity(v) for v in values),
    )


def elements(case: Case, task: Task) -> int:
    """Return how many elements all inputs of the case have."""
    return sum(
        math.prod(task.shape(spec, case.sizes, case.settings))
        for spec in task.tensors
        if spec.name not in case.absent
    )


def literal(case: Case, task: Task, literalize: Callable[[Case], Case]) -> Iterator[Case]:
    """Write out the case's drawn values, if they are few and not all 0."""
    if case.literals or case.dtype in PARTS or not 0 < elements(case, task) <= MOST_LITERALS:
        return
    if any(spec.held is not None for spec in task.tensors):
        # Stored offsets and page tables fit together; simpler ones would not.
        return
    written = literalize(case)
    if any(v != 0.0 for _, tensor in written.literals for v in tensor):
        yield written


def simpler(case: Case, task: Task) -> Iterator[Case]:
    """Yield the case with simpler literals: all of them, then halves, quarters, ..., one by one.

    Indices stay: equal ones may ask for what the operator leaves undefined. So do structured
    matrices, which would lose their structure.
    """
    specs = {s.name: s for s in task.tensors}
    kinds = {name: specs[name].kind for name, _ in case.literals if name in specs}
    places = [
        (t, i)
        for t, (name, values) in enumerate(case.literals)
        if kinds.get(name) not in _FIXED
        for i in range(len(values))
    ]
    low, high = task.values or (-math.inf, math.inf)

    def changed(chosen: list[tuple[int, int]], value: float) -> Case:
        tensors = [list(values) for _, values in case.literals]
        for t, i in chosen:
            kind = kinds.get(case.literals[t][0], "real")
            tensors[t][i] = min(
                max(value, _LOWEST.get(kind, low), low), _HIGHEST.get(kind, high), high
            )
        names = [name for name, _ in case.literals]
        pairs = zip(names, tensors, strict=True)
        return replace(case, literals=tuple((n, tuple(v)) for n, v in pairs))

    for chosen in [places, *([p for p in places if p[0] == t] for t in range(len(case.literals)))]:
        yield from (changed(chosen, v) for v in (0.0, 1.0))
    size = len(places) // 2
    while size >= 1:
        for start in range(0, len(places), size):
            chunk = places[start : start + size]
            yield from (changed(chunk, v) for v in (0.0, 1.0))
        size //= 2
    for place in places:
        name, values = case.literals[place[0]]
        if kinds.get(name, "real") in _ROUNDED:
            yield from (changed([place], v) for v in rounder(values[place[1]]))


def rounder(value: float) -> list[float]:
    """Return rounder numbers near a number, or instead of it, if it is neither 0 nor 1."""
    if value in (0.0, 1.0) or math.isnan(value):
        return []
    sign = math.copysign(1.0, value)
    found = [sign, *(sign * n for n in _ROUND if n < abs(value) * 10)]
    if math.isfinite(value):
        found += [float(f"{value:.{digits}e}") for digits in (0, 1, 2)]
        found += [float(math.trunc(value)), abs(value)]
    return [v for v in dict.fromkeys(found) if complexity(v) < complexity(value)]
