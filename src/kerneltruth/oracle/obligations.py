"""Obligations: the promises that cases test, and what a case asks beyond the published inputs.

A case departs from the benchmark's own inputs in some ways: another size, another dtype, a
transposed layout. Each way is a departure, and belongs to one obligation. A kernel that fails a
case breaks the obligation of the departure without which it is right (see `blame.blamed`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from kerneltruth.cases import shapes
from kerneltruth.cases.recipes import RECIPES
from kerneltruth.cases.values import FLOAT_KINDS
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Obligation
from kerneltruth.tasks.model import BACKWARD, CALL
from kerneltruth.tasks.spec import Scalar, Task

BEYOND = "beyond"


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """One way in which a case departs from the published inputs.

    Attributes:
        obligation: that it belongs to.
        part: the dtype, or `beyond` where the prompt promises another part of the obligation.
        promised: whether the task's prompt promises it.
    """

    obligation: Obligation
    part: str = ""
    promised: bool = True

    @property
    def key(self) -> str:
        """The entry of a profile: `layouts`, `dtypes.float16`, `attributes.beyond`."""
        return f"{self.obligation}.{self.part}" if self.part else self.obligation


# Obligations, by key, that no case tries where nothing promises them.
ONLY_WHERE_PROMISED = frozenset({"gradients", "attributes"})


def obligations_of(task: Task) -> Iterator[Departure]:
    """The obligations of a task, and its parts of them; those that are missing do not apply."""
    yield Departure(obligation="published")
    others = [(a.name, v) for a in task.attributes for v in a.values[1:]]
    forms = [task.is_core({n: v}) for n, v in others if obligation_of(task, n, v) == "shapes"]
    if task.dims or forms:
        yield Departure(obligation="shapes")
        if not all(forms):
            yield Departure(obligation="shapes", part=BEYOND, promised=False)
    if task.tensors:
        yield Departure(obligation="values", promised=task.promises.values)
    yield from _of_attributes(task)
    first = task.promised_dtypes[:1]
    for dtype in dict.fromkeys((*task.promised_dtypes, *task.dtypes, *task.extended_dtypes)):
        if dtype not in first:
            promised = dtype in task.promised_dtypes
            yield Departure(obligation="dtypes", part=dtype, promised=promised)
    if task.layouts and task.tensors:
        known = task.promises.layouts
        yield Departure(obligation="layouts", promised=bool(known))
        if known:
            yield Departure(obligation="layouts", part=BEYOND, promised=False)
    if any(spec.kind in FLOAT_KINDS for spec in task.tensors):
        yield Departure(obligation="specials", promised=False)
        gradients = task.is_core({CALL: BACKWARD}) and task.promises.gradients
        yield Departure(obligation="gradients", promised=gradients)
    if any(axis.may_be_empty for axis in shapes.axes(task, "cpu")):
        yield Departure(obligation="empty", promised=task.promises.empty)
    yield Departure(obligation="interface")
    yield Departure(obligation="memory")
    yield Departure(obligation="repeatable")


def _of_attributes(task: Task) -> Iterator[Departure]:
    calls = {v for a in task.attributes if a.name == CALL for v in a.values} - {BACKWARD}
    others = [(a.name, v) for a in task.attributes if a.name != CALL for v in a.values[1:]]
    chosen = [(n, v) for n, v in others if obligation_of(task, n, v) == "attributes"]
    promised = [task.is_core({n: v}) for n, v in chosen]
    if any(promised) or len(calls) > 1 or any(spec.optional for spec in task.tensors):
        yield Departure(obligation="attributes")
    elif fixed_numbers(task):
        yield Departure(obligation="attributes", promised=False)
    if not all(promised):
        yield Departure(obligation="attributes", part=BEYOND, promised=False)


def obligation_of(task: Task, name: str, value: Scalar) -> Obligation:
    """The obligation that tries an attribute's value."""
    match task.asks(name, value):
        case "argument":
            return "attributes"
        case "values" if task.is_core({name: value}):
            return "values"
        case _:
            return "shapes"


def fixed_numbers(task: Task) -> tuple[str, ...]:
    """The numbers and bools that a caller passes and for which the task lists one value only."""
    passed = [a for a in task.attributes if not a.hidden and len(a.values) <= 1]
    return tuple(a.name for a in passed if isinstance(a.default, int | float))


def departures(task: Task, case: Case, published: Case) -> tuple[Departure, ...]:
    """How a case departs from the published one, the most unusual way first."""
    return tuple(_departures(task, case, published))


def _departures(task: Task, case: Case, published: Case) -> Iterator[Departure]:
    special = RECIPES[case.recipe].domain != "core"
    if special:
        yield Departure(obligation="specials", promised=False)
    if 0 in case.sizes.values():
        yield Departure(obligation="empty", promised=task.promises.empty)
    if task.wants_gradients(case.settings):
        yield Departure(obligation="gradients", promised=task.is_core(case.settings))
    if case.layout != published.layout:
        yield layouts_departure(task, case.layout)
    if case.dtype != published.dtype:
        promised = case.dtype in task.promised_dtypes
        yield Departure(obligation="dtypes", part=case.dtype, promised=promised)
    chosen, drawn, forms = _other_settings(task, case, published)
    if not task.is_core(chosen):
        yield Departure(obligation="attributes", part=BEYOND, promised=False)
    if _promised(task, chosen) or set(case.left_out) - set(published.left_out):
        yield Departure(obligation="attributes")
    if not task.is_core(forms):
        yield Departure(obligation="shapes", part=BEYOND, promised=False)
    if case.literals or drawn or (case.recipe != published.recipe and not special):
        yield Departure(obligation="values", promised=task.promises.values)
    if _promised(task, forms) or case.dims != published.dims:
        yield Departure(obligation="shapes")


def layouts_departure(task: Task, layout: str) -> Departure:
    """The departure of a case with another layout than the published inputs have."""
    known = task.promises.layouts
    promised = layout in known
    part = BEYOND if known and not promised else ""
    return Departure(obligation="layouts", part=part, promised=promised)


def _promised(task: Task, settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The settings that the prompt promises."""
    return {name: value for name, value in settings.items() if task.is_core({name: value})}


def _other_settings(
    task: Task, case: Case, published: Case
) -> tuple[dict[str, Scalar], dict[str, Scalar], dict[str, Scalar]]:
    """The settings that are not the published ones: of `attributes`, of `values`, of `shapes`."""
    usual = published.settings
    found: dict[Obligation, dict[str, Scalar]] = {"attributes": {}, "values": {}, "shapes": {}}
    others = [(n, v) for n, v in case.attributes if not _is_same(v, usual[n])]
    for name, value in others:
        if name != CALL or not task.wants_gradients(case.settings):
            found[obligation_of(task, name, value)][name] = value
    return found["attributes"], found["values"], found["shapes"]


def _is_same(value: Scalar, usual: Scalar) -> bool:
    """Whether two attributes are the same: 1 is neither 1.0 nor True, and NaN is itself."""
    return type(value) is type(usual) and (value == usual or (value != value and usual != usual))


def without(task: Task, case: Case, departure: Departure, published: Case) -> Case | None:
    """The case without one of its departures; None where the task has no such case."""
    return next(_all_without(task, case, departure, published), None)


def _all_without(task: Task, case: Case, departure: Departure, published: Case) -> Iterator[Case]:
    """The cases without one of its departures: each set of finite values replaces special ones."""
    finite = RECIPES[case.recipe].finite if departure.obligation == "specials" else ()
    found = [replace(case, recipe=name, literals=()) for name in finite]
    found = found or [_without(task, case, departure, published)]
    allowed = [c for c in found if c != case and task.allows(c.sizes, c.settings)]
    if not allowed and departure.part == BEYOND and departure.obligation != "layouts":
        # What goes beyond the prompt may need what it promises, such as a mode of its own.
        promised = Departure(obligation=departure.obligation)
        apart = _without(task, _without(task, case, departure, published), promised, published)
        allowed = [apart] if task.allows(apart.sizes, apart.settings) else []
    yield from allowed


def _without(task: Task, case: Case, departure: Departure, published: Case) -> Case:
    usual = published.settings
    chosen, drawn, forms = _other_settings(task, case, published)
    if departure.part == BEYOND and departure.obligation in ("attributes", "shapes"):
        found = chosen if departure.obligation == "attributes" else forms
        return case.with_attributes(**{n: usual[n] for n in found.keys() - _promised(task, found)})
    match departure.obligation:
        case "specials":
            return replace(case, recipe=published.recipe, literals=())
        case "values":
            case = case.with_attributes(**{name: usual[name] for name in drawn})
            return replace(case, recipe=published.recipe, literals=())
        case "empty":
            return case.with_dims(**{s: _some(task, s) for s, n in case.dims if n == 0})
        case "gradients":
            return case.with_attributes(**{CALL: usual[CALL]})
        case "layouts":
            return replace(case, layout=published.layout)
        case "dtypes":
            return replace(case, dtype=published.dtype)
        case "attributes":
            kept = tuple(n for n in case.absent if n not in case.left_out)
            settings = {name: usual[name] for name in _promised(task, chosen)}
            return replace(case.with_attributes(**settings), absent=published.left_out + kept)
        case _:
            settings = {name: usual[name] for name in _promised(task, forms)}
            return case.with_dims(**published.sizes).with_attributes(**settings)


def _some(task: Task, symbol: str) -> int:
    """A small size in the place of 0."""
    dim = task.dim(symbol)
    least = max(dim.low, 3)
    return least if dim.high is None else min(least, dim.high)


def most_ordinary(
    task: Task,
    case: Case,
    published: Case,
    fails: Callable[[Case], bool],
    *,
    kept: Collection[str] = (),
    costly: Collection[str] = (),
) -> Case:
    """The failing case with as few departures as it takes; the most unusual goes first.

    None departs from `published`; `fails` returns whether a simpler case fails in the same way.
    Large finite values replace special ones, or else ordinary values do; these may be to blame in
    turn. Departures whose keys are `kept` stay, and `costly` ones where it takes another.
    """
    needed = set(kept)
    while True:
        left = (d for d in departures(task, case, published) if d.key not in needed)
        departure = next(left, None)
        if departure is None:
            return case
        if departure.key in costly and needed.difference(kept):
            needed.add(departure.key)
            continue
        simpler = next(filter(fails, _all_without(task, case, departure, published)), None)
        if simpler is None:
            needed.add(departure.key)
        else:
            case = simpler
