"""Kinds: what an obligation asks in several ways, and which of them had no turn.

A layout is a kind within `layouts`, a recipe within `values` and `specials`, and the largest size
of a dim within `shapes`. An obligation that holds in some of its kinds says which it was not tried
in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kerneltruth.cases import shapes
from kerneltruth.cases.drafts import layouts_of, recipes_of
from kerneltruth.cases.recipes import RECIPES
from kerneltruth.cases.shapes import Device
from kerneltruth.documents.case import Case
from kerneltruth.oracle.obligations import Departure, layouts_departure, obligations_of
from kerneltruth.tasks.spec import Task


class Kind(NamedTuple):
    """A kind within an obligation, by the obligation's key."""

    key: str
    name: str


class Kinds:
    """The kinds within the obligations of a task on a device."""

    def __init__(self, task: Task, published: Case, device: str) -> None:
        kind: Device = "cpu" if device == "cpu" else "cuda"
        self._largest = _largest_sizes(task, kind)
        known = {d.key for d in obligations_of(task)}
        self._all: defaultdict[str, list[str]] = defaultdict(list)
        for key, name in _kinds(task, published, self._largest):
            if key in known:
                self._all[key].append(name)

    def within(self, key: str) -> tuple[str, ...]:
        """Return the kinds within an obligation; none where it is tried in one way."""
        return tuple(self._all.get(key, ()))

    def tried(self, case: Case, departing: Sequence[Departure]) -> Iterator[Kind]:
        """Yield the kinds that a case tries, which departs in these ways."""
        for departure in departing:
            match departure.obligation:
                case "layouts":
                    yield Kind(departure.key, case.layout)
                case "specials" | "values" if not case.literals:
                    yield Kind(departure.key, case.recipe)
                case "shapes":
                    for symbol, size in self._largest.items():
                        if case.sizes[symbol] >= size:
                            yield Kind(departure.key, f"{symbol}={size}")
                case _:
                    pass


def _kinds(task: Task, published: Case, largest: dict[str, int]) -> Iterator[Kind]:
    for layout in layouts_of(task):
        yield Kind(layouts_departure(task, layout).key, layout)
    for recipe in recipes_of(task):
        if recipe != published.recipe and RECIPES[recipe].domain == "core":
            yield Kind("values", recipe)
    for recipe, declared in RECIPES.items():
        if declared.domain == "extended":
            yield Kind("specials", recipe)
    for symbol, size in largest.items():
        yield Kind("shapes", f"{symbol}={size}")


def _largest_sizes(task: Task, device: Device) -> dict[str, int]:
    """Return the largest size that each dim is tried at, of those that are tried at a large one."""
    axes = shapes.axes(task, device)
    found: dict[str, int] = {}
    for sizes in shapes.large_sizes(task, axes, device):
        symbol = max(sizes, key=lambda s: sizes[s])
        if not shapes.violations(task, sizes, {a.name: a.default for a in task.attributes}):
            found[symbol] = sizes[symbol]
    return found
