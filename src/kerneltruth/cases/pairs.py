"""Pairs that one case tries together: an attribute's value, and a dtype, values or sizes.

A kernel may take a branch for an attribute's value, and be wrong there only at the edges of exp, or
only where a matrix has more rows than columns; or one for integers, and forget `out=` there. Cases
that vary one thing at a time miss that. So do those that change several attributes at a time, where
`keepdim` is ignored without a `dim`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from kerneltruth.cases import shapes
from kerneltruth.cases.promised import domain_of, why_untried
from kerneltruth.cases.shapes import Device
from kerneltruth.documents.case import Case
from kerneltruth.tasks.model import BACKWARD, CALL
from kerneltruth.tasks.spec import Task

# The strategies that are not about sizes: which of two dims is the larger one may change.
_ORDINARY = frozenset({"attributes", "structured"})


class Pair(NamedTuple):
    """A value of an attribute with a dtype, a recipe, or an order of dims such as `M > N`.

    The way of the call, such as `out=`, is an attribute too. An unusual value may also meet another
    attribute's usual one: `dim as usual`.
    """

    attribute: str
    value: str
    meets: str


def paired(
    pairs: Pairs, published: Case, firsts: Sequence[Case], others: Sequence[Case], *, most: int
) -> tuple[list[Case], list[Case]]:
    """Return the cases that come first, and at most `most` more, that try the most pairs.

    A first case may have the sizes of two dims exchanged. Each further one is like one of the
    others, with the attributes' values that try the most pairs that none before it tries.
    """
    tried = set(pairs.tried(published))
    turned, more = [], []
    for case in firsts:
        turned.append(max(pairs.turned(case), key=lambda c: pairs.gain(c, tried)))
        tried |= pairs.tried(turned[-1])
    alike = [c for case in others for c in pairs.turned(case)]
    apart = [c for case in firsts[:1] for c in pairs.changed_in_one(case)]
    for _ in range(most):
        changed = [*(pairs.with_most(case, tried) for case in alike), *apart]
        best = max(changed, key=lambda c: pairs.gain(c, tried), default=None)
        if best is None or pairs.tried(best) <= tried:
            break
        more.append(best)
        tried |= pairs.tried(best)
    return turned, more


class Pairs:
    """The pairs of a task that a case may try.

    They combine each promised value of the caller's attributes with the further dtypes and the
    recipes that the prompt promises, and with both orders of a tensor's last two dims.
    """

    def __init__(self, task: Task, device: str) -> None:
        self._task = task
        kind: Device = "cpu" if device == "cpu" else "cuda"
        self._axes = shapes.axes(task, kind)
        self._limits = shapes.LIMITS[kind]
        self._dims = {d.symbol for d in task.dims}
        found = {
            a.name: tuple(v for v in a.values if v != BACKWARD and task.is_core({a.name: v}))
            for a in task.attributes
            if not a.hidden or a.name == CALL
        }
        self._values = {name: values for name, values in found.items() if len(values) > 1}
        self._usual = {name: repr(values[0]) for name, values in self._values.items()}

    def tried(self, case: Case) -> frozenset[Pair]:
        """Return the pairs that a case tries."""
        if case.domain != "core" or not self._values:
            return frozenset()
        met, chosen = self._met(case), {n: repr(case.settings[n]) for n in self._values}
        usual = [n for n, value in chosen.items() if value == self._usual[n]]
        apart = (
            Pair(n, value, f"{other} as usual")
            for n, value in chosen.items()
            if n not in usual
            for other in usual
        )
        return frozenset((*(Pair(n, v, m) for n, v in chosen.items() for m in met), *apart))

    def changed_in_one(self, case: Case) -> Iterator[Case]:
        """Yield the case with each unusual value of each attribute, the others as usual."""
        case = case.with_attributes(**{name: values[0] for name, values in self._values.items()})
        for name, values in self._values.items():
            changed = (case.with_attributes(**{name: value}) for value in values[1:])
            yield from (c for c in changed if self._takes(c))

    def turned(self, case: Case) -> Iterator[Case]:
        """Yield a case of ordinary sizes, and again with the sizes of two dims exchanged."""
        yield case
        if case.strategy not in _ORDINARY or case.domain != "core":
            return
        sizes = case.sizes
        for one, other in self._orders(case):
            turned = case.with_dims(**{one: sizes[other], other: sizes[one]})
            if turned != case and self._takes(turned):
                yield turned

    def gain(self, case: Case, tried: Set[Pair]) -> tuple[int, int, int]:
        """Return how many pairs a case adds: with promised recipes, with dtypes, and in all."""
        met = [pair.meets for pair in self.tried(case) - tried]
        return met.count(case.recipe), met.count(case.dtype), len(met)

    def with_most(self, case: Case, tried: Set[Pair]) -> Case:
        """Return the case with the attributes' values that add the most pairs."""
        met = self._met(case)
        for name, values in self._values.items():
            gains = {repr(v): sum(Pair(name, repr(v), m) not in tried for m in met) for v in values}
            best = max(values, key=lambda v: gains[repr(v)])
            changed = case.with_attributes(**{name: best})
            if gains[repr(best)] > gains.get(repr(case.settings[name]), 0) and self._takes(changed):
                case = changed
        return case

    def _met(self, case: Case) -> list[str]:
        sizes = case.sizes
        found = [case.dtype] if case.dtype in self._task.promised_dtypes[1:] else []
        if case.recipe in self._task.promises.recipes:
            found.append(case.recipe)
        for one, other in self._orders(case):
            if sizes[one] != sizes[other]:
                found.append(f"{one} {'<' if sizes[one] < sizes[other] else '>'} {other}")
        return found

    def _orders(self, case: Case) -> list[tuple[str, str]]:
        """The last two dims of each tensor, in the case's form."""
        settings = case.settings
        forms = (self._task.axes(spec, settings) for spec in self._task.tensors)
        last = ((axes[-2], axes[-1]) for axes in forms if len({*axes[-2:]} & self._dims) == 2)
        return list(dict.fromkeys(last))

    def _takes(self, case: Case) -> bool:
        """Whether the task has the case, and it costs no more than an ordinary one."""
        task, sizes, settings = self._task, case.sizes, case.settings
        return (
            shapes.violations(task, sizes, settings) == 0
            and shapes.within(task, self._axes, sizes, settings, self._limits)
            and domain_of(task, case) == "core"
            and not why_untried(task, case.dtype, case.recipe, sizes, settings)
        )
