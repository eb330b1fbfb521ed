"""Order cases by simplicity, and yield the simpler cases of a failing one.

The order of `key`, most important first, with its reasons:

1. shape: readers look at it first, and it makes every further try cheap;
2. attributes: readers assume defaults;
3. optional inputs: an absent one need not be read;
4. dtype: float32 rounds least and its values are the most familiar;
5. layout: contiguous unless the fault is about strides;
6. values: written out before drawn, and 0 and 1 before all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from kerneltruth.cases.promised import domain_of
from kerneltruth.cases.recipes import RECIPES
from kerneltruth.documents.case import Case, Domain
from kerneltruth.explain.minimize import boxes, shapes, values
from kerneltruth.explain.minimize.search import MinimizeBudget, Pass, Shrunk, minimize
from kerneltruth.tasks.spec import Task

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int32",
    "int64",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
)
SIMPLEST_FIRST = ("zeros", "ones", "small", "uniform01", "uniform", "normal")

# Larger numbers are extreme: only a recipe of the extended domain draws them.
MODERATE = 1e4


def key(case: Case, task: Task) -> tuple[Any, ...]:
    """Return the case's sort key, simplest least; a total order of one task and seed's cases."""
    # The shapes of a task without dims follow from its attributes.
    shape = shapes.order(tuple(n for _, n in case.dims))
    if not task.dims:
        shape = (0, values.elements(case, task), ())
    by_value: tuple[Any, ...] = (1, _rank(SIMPLEST_FIRST, case.recipe))
    if case.literals:
        by_value = (0, *values.order(case))
    return (
        shape,
        _attribute_order(case, task),
        (-len(case.absent), case.absent),
        _rank(DTYPES, case.dtype),
        _rank(("contiguous",), case.layout),
        by_value,
    )


def _rank(simplest_first: Sequence[str], name: str) -> tuple[int, str]:
    known = simplest_first.index(name) if name in simplest_first else len(simplest_first)
    return (known, name)


def _attribute_order(case: Case, task: Task) -> tuple[Any, ...]:
    places = []
    for a in task.attributes:
        value = case.settings.get(a.name, a.default)
        place = a.values.index(value) if value in a.values else len(a.values)
        places.append((place, repr(value)))
    return (sum(place > 0 for place, _ in places), tuple(places))


def domain(case: Case, task: Task) -> Domain:
    """Return the domain of the case, whatever it was made from."""
    if not case.literals:
        return domain_of(task, case)
    drawn_so = RECIPES[case.recipe].domain == "core"
    written = [v for _, tensor in case.literals for v in tensor]
    ordinary = all(math.isfinite(v) and (drawn_so or abs(v) <= MODERATE) for v in written)
    return domain_of(task, replace(case, recipe="uniform")) if ordinary else "extended"


def settings(case: Case, task: Task, recipes: Sequence[str] = SIMPLEST_FIRST) -> Iterator[Case]:
    """Yield the same shape with simpler attributes, inputs, dtype, layout or recipe."""
    attributes = {a.name: a.default for a in task.attributes if a.name in case.settings}
    optional = tuple(s.name for s in task.tensors if s.optional)
    # A dtype of the extended domain is no simpler than a main one: a kernel may refuse it.
    main = () if case.dtype in task.dtypes else task.extended_dtypes
    dtypes = _simpler(DTYPES, case.dtype, (*task.dtypes, *main))
    drawn = _simpler(SIMPLEST_FIRST, case.recipe, recipes) if not case.literals else []
    plain = replace(
        case.with_attributes(**attributes),
        dtype=dtypes[0] if dtypes else case.dtype,
        layout="contiguous",
    )
    found = [plain, replace(plain, absent=optional), case.with_attributes(**attributes)]
    for a in task.attributes:
        if a.name in case.settings:
            now = case.settings[a.name]
            before = a.values[: a.values.index(now)] if now in a.values else a.values
            found += [case.with_attributes(**{a.name: v}) for v in before]
    found.append(replace(case, absent=optional))
    for name in optional:
        some = {*case.absent, name}
        found.append(replace(case, absent=tuple(n for n in optional if n in some)))
    found += [replace(case, dtype=d) for d in dtypes]
    found.append(replace(case, layout="contiguous"))
    found += [replace(case, recipe=r) for r in drawn]
    if case.literals:
        # Written-out values belong to the inputs they were written for.
        found = [c for c in found if c.absent == case.absent and _same_shapes(c, case, task)]
    yield from (c for c in found if task.allows(c.sizes, c.settings))


def _same_shapes(one: Case, other: Case, task: Task) -> bool:
    return all(
        task.shape(s, one.sizes, one.settings) == task.shape(s, other.sizes, other.settings)
        for s in task.tensors
    )


def _simpler(simplest_first: Sequence[str], now: str, offered: Sequence[str]) -> list[str]:
    ranked = sorted(offered, key=partial(_rank, simplest_first))
    return [name for name in ranked if _rank(simplest_first, name) < _rank(simplest_first, now)]


def passes(
    task: Task,
    *,
    literalize: Callable[[Case], Case],
    blocks: Sequence[int] = (),
    swept: int = shapes.SWEPT,
) -> list[Pass[Case]]:
    """Return the passes that shrink a case of the task, in the order that needs the fewest tries.

    `literalize` returns the same case with its drawn values as literals. One more than each block
    size of the candidate is tried early, and the `swept` smallest shapes always.
    """
    found: list[Pass[Case]] = [_reshaping(task, shapes.floored)]
    if not task.dims:
        found = [partial(_other_forms, task=task)]
    # Plainer values sometimes need larger shapes, and the shape comes first; but if zeros fail,
    # values do not matter.
    found.append(partial(settings, task=task, recipes=SIMPLEST_FIRST[:1]))
    for i in range(len(task.dims)):
        found.append(_reshaping(task, partial(_lowered, index=i, blocks=tuple(blocks))))
    found += [_reshaping(task, shapes.together), _reshaping(task, shapes.traded)]
    found.append(partial(settings, task=task))
    found.append(_reshaping(task, partial(shapes.swept, most=swept)))
    found.append(partial(values.literal, task=task, literalize=literalize))
    found.append(partial(boxes.sliced, task=task))
    if not task.dims:
        found.append(partial(_moved, task=task))
    found.append(partial(values.simpler, task=task))
    return found


def _lowered(
    sizes: shapes.Sizes, allowed: shapes.Allowed, *, index: int, blocks: tuple[int, ...]
) -> Iterator[shapes.Sizes]:
    return shapes.lowered(sizes, index, allowed, blocks)


def _smaller_forms(case: Case, task: Task) -> list[Case]:
    """Return the case with attributes that give its tensors fewer elements, fewest first."""
    hidden = [{a.name: v} for a in task.attributes if a.hidden for v in a.values]
    forms = (case.with_attributes(**form) for form in (*task.smaller, *hidden))
    now = values.elements(case, task)
    fewer = ((values.elements(form, task), form) for form in forms)
    return [form for count, form in sorted(fewer, key=lambda f: f[0]) if count < now]


def _other_forms(case: Case, task: Task) -> Iterator[Case]:
    if not case.literals:
        yield from _smaller_forms(case, task)


def _moved(case: Case, task: Task) -> Iterator[Case]:
    """Yield smaller forms of a case whose values are written out, with a part of these."""
    if case.literals:
        for form in _smaller_forms(replace(case, literals=()), task):
            yield from boxes.moved(case, form, task)


def _reshaping(
    task: Task, reshape: Callable[[shapes.Sizes, shapes.Allowed], Iterator[shapes.Sizes]]
) -> Pass[Case]:
    """Turn a pass over shapes into a pass over cases."""

    def simpler(case: Case) -> Iterator[Case]:
        if case.literals:
            return
        symbols = [s for s, _ in case.dims]

        def allowed(sizes: shapes.Sizes) -> bool:
            return task.allows(dict(zip(symbols, sizes, strict=True)), case.settings)

        for sizes in reshape(tuple(n for _, n in case.dims), allowed):
            yield case.with_dims(**dict(zip(symbols, sizes, strict=True)))

    return simpler


def minimize_case(
    case: Case,
    task: Task,
    fails: Callable[[Case], bool],
    *,
    literalize: Callable[[Case], Case],
    budget: MinimizeBudget,
    blocks: Sequence[int] = (),
) -> Shrunk[Case]:
    """Return the simplest case found on which `fails` still holds; `case` is known to fail."""
    swept = min(shapes.SWEPT, budget.evaluations // shapes.SWEPT_SHARE)
    return minimize(
        case,
        passes(task, literalize=literalize, blocks=blocks, swept=swept),
        fails,
        key=partial(key, task=task),
        budget=budget,
    )
