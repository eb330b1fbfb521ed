"""Search for sets of constants: which a problem accepts, and which are worth judging on.

A problem states no constraints, so they are learned from tries: values are tried alone, then
together, and refused values are dropped one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kerneltruth.cases.philox import derive
from kerneltruth.suites.kernelbench.constants import Constants, Slot, slots_of
from kerneltruth.suites.kernelbench.forms import Form, form_of, same_parts
from kerneltruth.suites.kernelbench.schema import Outline

Try = Callable[[Constants], Outline | None]

# Original values up to here define the model (a kernel, a stride, a rank, a count of layers),
# unless they occur in the shape of an input.
STRUCTURAL = 12
WANTED = 10
# Each try of a problem that cannot be made small takes a good part of a second.
WANTED_LARGE = 5
_CAPS = (16, 8, 32, 64, 4, 128, 256)
_SIZES = (7, 33, 1, 3, 17, 31, 65, 2, 64, 129, 257, 5, 513, 1025)
_TIED = (7, 33, 3, 17, 31, 2, 64, 65, 5, 129)
_OF_STRUCTURE = (1, 2, 3, 5)
_ATTEMPTS = 40
# One set in this many also changes what the model is.
_STRUCTURE_EVERY = 3
# If this many values change the model's weights, all do: the number counts layers.
_ENOUGH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudget:
    """Limits of a case on a CPU: the preferred one, and the most for a problem without small forms.

    Each case takes about ten float64 evaluations.
    """

    elements: int
    weights: int
    flops: int

    def holds(self, outline: Outline) -> bool:
        """Return whether a call is within the limits."""
        return (
            outline.elements <= self.elements
            and outline.weights <= self.weights
            and outline.flops <= self.flops
        )


PREFERRED = SearchBudget(elements=2**15, weights=2**17, flops=2**25)
MOST = SearchBudget(elements=2**23, weights=60 * 2**20, flops=2**35)
# For sets that are listed and never computed.
ANY = SearchBudget(elements=2**62, weights=2**62, flops=2**62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A set that the problem accepts; `core` if it differs from the file in sizes alone."""

    constants: Constants
    outline: Outline
    core: bool = True


class Search:
    """Searches sets of constants of one problem.

    Args:
        constants: the file's own.
        attempt: returns the outline for a set of constants, or None if the problem rejects them.
        seed: of the composed sets.
        most: limits the cost of the smallest set.
        sketch: as `attempt`, without a call of the model: shapes of inputs and weights alone.
    """

    def __init__(
        self,
        constants: Constants,
        attempt: Try,
        *,
        seed: int,
        most: SearchBudget = MOST,
        sketch: Try | None = None,
    ) -> None:
        self._own = constants
        self._attempt = attempt
        self._seed = seed
        self._most = most
        self._slots = slots_of(constants)
        self._sizes = tuple(self._sizes_among(sketch or attempt))
        self._structural: frozenset[Slot] = frozenset()
        self._form: Form | None = None
        self._base_set: Found | None = None
        self.found: list[Found] = []

    def run(self) -> list[Found]:
        """Return sets in the order of their cost, small ones first.

        The very first is the smallest that differs from the file in sizes alone.
        """
        own = self._attempt(self._own)
        if own is not None:
            self._form = self._form_at(self._own, own)
        base = self._base()
        if base is None:
            return []
        self._base_set = base
        self._form = self._form or self._form_at(base.constants, base.outline)
        self._structural = frozenset(self._structure(base))
        small = PREFERRED.holds(base.outline)
        budget = PREFERRED if small else self._around(base.outline)
        values = {s: self._values(s, base, budget, most=20 if small else 5) for s in self._slots}
        found = [base]
        for k in range(_ATTEMPTS):
            if len(found) >= (WANTED if small else WANTED_LARGE):
                break
            made = self._compose(k, base, values, budget)
            if made is not None and all(made.outline.shapes != f.outline.shapes for f in found):
                found.append(made)
        self.found = sorted(found, key=lambda f: cost(f.outline))
        # The ordinary case comes first, so it is of the file's own model.
        ordinary = next(f for f in self.found if f.core)
        return [ordinary, *(f for f in self.found if f is not ordinary)]

    @property
    def base(self) -> Found | None:
        """Return the set that others vary; after `run`, none for a problem without small forms."""
        base = self._base_set
        return base if base is not None and PREFERRED.holds(base.outline) else None

    @property
    def sizes(self) -> list[Slot]:
        """Return the constants that determine shapes, and not what the model is; after `run`."""
        return [s for s in self._sizes if s not in self._structural]

    def accepted(self, constants: Constants, start: Found) -> Found | None:
        """Return the set if the problem accepts it in the form of `start`, whatever it costs."""
        outline = self._attempt(constants)
        if outline is None or not self._fits(outline, start.outline):
            return None
        return Found(constants=constants, outline=outline)

    def _sizes_among(self, sketch: Try) -> Iterator[Slot]:
        """Return the constants that determine shapes of inputs or weights.

        Other constants define the problem: bounds of random integers, numbers of levels or steps.
        """
        own = sketch(self._own)
        for slot in self._slots:
            if own is None or self._shows(slot, own, sketch):
                yield slot

    def _shows(self, slot: Slot, own: Outline, sketch: Try) -> bool:
        """Return whether another value here, alone or in all equal places, changes a shape."""
        alike = [s for s in self._slots if s.value == slot.value]
        for group in ([slot], alike):
            for value in (2 * slot.value, slot.value + 1, slot.value // 2):
                if value < 1:
                    continue
                made = sketch(put_all(self._own, group, value))
                if made is not None and list(made.state) == list(own.state):
                    return made.extents != own.extents
        return False

    def _form_at(self, constants: Constants, outline: Outline) -> Form:
        """Return the problem's form here, with each size changed by itself."""
        outlines = [outline]
        for slot in self._sizes:
            now = slot.get(constants)
            alike = [s for s in self._sizes if s.get(constants) == now]
            tries = (put_all(constants, g, n) for g in ([slot], alike) for n in (2 * now, now // 2))
            made = (self._attempt(t) for t in tries if min(s.get(t) for s in alike) > 0)
            outlines += [next((m for m in made if m and same_parts(m, outline)), outline)]
        return form_of(outlines)

    def _fits(self, outline: Outline, base: Outline, *, of_the_model: bool = True) -> bool:
        """Return whether a set has the form of the problem's file."""
        return same_parts(outline, base) and (
            self._form is None or self._form.allows(outline, of_the_model=of_the_model)
        )

    def to_time(self, own: Outline, holds: Callable[[Outline], bool]) -> Found | None:
        """Halve the file's own constants, largest first, until a call is small enough.

        Equal constants are halved together: usually they are the same size. Small ones, which may
        define the model, stay. A change that the problem rejects, or that makes nothing smaller, is
        undone.

        Args:
            own: the outline of the file's own constants.
            holds: returns whether a call is small enough.
        """
        constants, outline = self._own, own
        groups: dict[int, list[Slot]] = {}
        for slot in self._sizes:
            if slot.value > STRUCTURAL:
                groups.setdefault(slot.value, []).append(slot)
        while not holds(outline):
            sizes = {value: group[0].get(constants) for value, group in groups.items()}
            largest = max(sizes, key=sizes.__getitem__, default=None)
            if largest is None or sizes[largest] == 1:
                return None
            smaller = put_all(constants, groups[largest], sizes[largest] // 2)
            made = self._attempt(smaller)
            if made is None or not self._fits(made, own) or cost(made) >= cost(outline):
                del groups[largest]
                continue
            constants, outline = smaller, made
        return Found(constants=constants, outline=outline)

    def _try(self, constants: Constants, budget: SearchBudget) -> Outline | None:
        outline = self._attempt(constants)
        return outline if outline is not None and budget.holds(outline) else None

    def _base(self) -> Found | None:
        """Cut the set of constants down to a power of two, or each alone to an accepted value."""
        cheapest: Found | None = None
        for cap in _CAPS:
            constants = self._own
            for slot in self._sizes:
                if slot.value > max(STRUCTURAL, cap):
                    constants = slot.put(constants, cap)
            outline = self._try(constants, self._most)
            if outline is None or not self._fits(outline, outline):
                continue
            if PREFERRED.holds(outline):
                return Found(constants=constants, outline=outline)
            if cheapest is None or outline.flops < cheapest.outline.flops:
                cheapest = Found(constants=constants, outline=outline)
        return self._cut_down(cheapest)

    def _cut_down(self, start: Found | None) -> Found | None:
        """Make one constant after the other as small as the problem accepts."""
        constants = start.constants if start else self._own
        best = start
        for slot in sorted(self._sizes, key=lambda s: -s.get(constants)):
            for value in (2, 4, 8, 16, 32, 64, 128, 256, 512):
                if value >= slot.get(constants):
                    break
                if slot.value <= STRUCTURAL and value < slot.value and best is not None:
                    continue
                outline = self._attempt(slot.put(constants, value))
                if outline is None or not self._fits(outline, outline):
                    continue
                constants = slot.put(constants, value)
                if self._most.holds(outline):
                    best = Found(constants=constants, outline=outline)
                break
            if best is not None and PREFERRED.holds(best.outline):
                return best
        return best

    def _structure(self, base: Found) -> Iterator[Slot]:
        """Return the slots that define the model: small numbers that no input's shape shows."""
        shapes = [i.shape for i in base.outline.inputs]
        for slot in self._slots:
            if slot.value > STRUCTURAL:
                continue
            if slot not in self._sizes:
                yield slot
                continue
            moved = self._attempt(slot.put(base.constants, slot.get(base.constants) + 1))
            if moved is None or [i.shape for i in moved.inputs] == shapes:
                yield slot

    def _values(self, slot: Slot, base: Found, budget: SearchBudget, *, most: int) -> list[int]:
        """Return the values that the problem accepts for one constant while the others stay."""
        now = slot.get(base.constants)
        if slot not in self._sizes and slot not in self._structural:
            return []
        if slot in self._structural:
            deck = [n for n in (*_OF_STRUCTURE, now + 1) if n != now]
        else:
            deck = [n for n in (*_SIZES, 2 * now, 3 * now, now + 1) if n != now]
        accepted: list[int] = []
        of_other_form, too_large = 0, math.inf
        for value in list(dict.fromkeys(deck))[:most]:
            if value > too_large or (of_other_form >= _ENOUGH and not accepted):
                continue
            outline = self._attempt(slot.put(base.constants, value))
            if outline is None:
                continue
            if not self._fits(outline, base.outline, of_the_model=slot not in self._structural):
                of_other_form += 1
            elif budget.holds(outline):
                accepted.append(value)
            elif slot not in self._structural:
                too_large = value
        return accepted

    def _compose(
        self, k: int, base: Found, values: dict[Slot, list[int]], budget: SearchBudget
    ) -> Found | None:
        """Return the k-th set: values for all constants, fewer if the problem refuses them all."""
        structure = k % _STRUCTURE_EVERY == _STRUCTURE_EVERY - 1
        picked: dict[Slot, int] = {}
        for slot in self._slots:
            if slot in self._structural and not structure:
                continue
            choices = values[slot]
            if choices:
                picked[slot] = choices[self._pick(len(choices), k, slot)]
        picked |= self._tied(k)
        order = sorted(picked, key=lambda s: self._pick(2**30, k, s, "order"))
        while picked:
            constants = base.constants
            for slot, value in picked.items():
                constants = slot.put(constants, value)
            outline = self._try(constants, budget)
            core = not any(s in self._structural for s in picked)
            if outline is not None and self._fits(outline, base.outline, of_the_model=core):
                return Found(constants=constants, outline=outline, core=core)
            picked.pop(order.pop())
        return None

    def _tied(self, k: int) -> dict[Slot, int]:
        """Every second time, equal constants of the file change together: some have to."""
        if k % 2 == 0:
            return {}
        groups: dict[int, list[Slot]] = {}
        for slot in self._sizes:
            if slot.value > STRUCTURAL:
                groups.setdefault(slot.value, []).append(slot)
        value = _TIED[k // 2 % len(_TIED)]
        return {s: value for group in groups.values() if len(group) > 1 for s in group}

    def _around(self, outline: Outline) -> SearchBudget:
        """Return the limits if even the smallest known set is large."""
        most = self._most
        return SearchBudget(
            elements=max(PREFERRED.elements, min(2 * outline.elements, most.elements)),
            weights=max(PREFERRED.weights, min(2 * outline.weights, most.weights)),
            flops=max(PREFERRED.flops, min(3 * outline.flops, most.flops)),
        )

    def _pick(self, n: int, k: int, slot: Slot, purpose: str = "value") -> int:
        return derive(self._seed, purpose, slot.name, str(slot.places), str(k)) % n


def cost(outline: Outline) -> int:
    """Estimate what a case costs."""
    return outline.flops + outline.elements + outline.weights


def put_all(constants: Constants, slots: Iterable[Slot], value: int) -> Constants:
    """Return the constants that have one value in several places."""
    for slot in slots:
        constants = slot.put(constants, value)
    return constants
