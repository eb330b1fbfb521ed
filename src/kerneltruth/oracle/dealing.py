"""Dealing: in which order the cases of a task are tried, and how many."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from msgspec.structs import replace

from kerneltruth.cases.drafts import recipes_of
from kerneltruth.cases.pairs import Pairs, paired
from kerneltruth.cases.promised import Promise, promises_of
from kerneltruth.cases.published import published_case
from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import Case
from kerneltruth.oracle.kinds import Kind, Kinds
from kerneltruth.oracle.obligations import Departure, departures, obligations_of
from kerneltruth.oracle.plan import Plan
from kerneltruth.tasks.spec import Task

# Offer this many cases for each that is wanted: some cannot be judged, and few try a rare promise.
OFFERED = 4
LEAST_OFFERED = 64
# One case in eight combines promised values that are otherwise tried apart.
PAIRED = 8
# What a special value does depends on where it falls.
SPECIAL_TURNS = 3
# Strategies whose cases are about sizes, and the values that these have.
OF_SIZES = frozenset({"default", "boundary", "tiles", "regular", "single_dtype"})
ORDINARY = frozenset({"uniform", "normal"})
# A kernel that assumes contiguous inputs may be right on one of them by chance.
TELLING_LAYOUTS = frozenset({"transposed", "strided", "row_gaps"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """The cases of a task in the order in which they are tried, the published inputs aside.

    Attributes:
        firsts: each tries something that decides, or is promised, and that none before it tries.
        others: cases that combine promises, then cases beyond the contract, then each untried
            kind of layout, values and size, in turn with all other cases. There are more than are
            judged, so that they can replace cases that cannot be judged.
        total: how many cases are judged, the published inputs among them.
    """

    firsts: tuple[Case, ...]
    others: tuple[Case, ...]
    total: int


def deal(
    task: Task,
    plan: Plan,
    published: Case,
    *,
    device: str,
    blocks: Sequence[int] = (),
    thresholds: Sequence[int] = (),
) -> Deal:
    """Deal the cases: first what decides, then pairs, what lies beyond, and kinds with all else.

    No case departs from `published`. The candidate may branch at sizes that are `thresholds`.
    """
    chosen = plan.chosen() | {"device": device, "blocks": blocks, "thresholds": thresholds}
    offered = generate(task, count=max(OFFERED * plan.cases, LEAST_OFFERED), **chosen)
    decisive = {d for d in obligations_of(task) if plan.contract_with_demands.decides(d)}
    # By their text, since 1, 1.0 and True are promises of their own and equal.
    promises = {repr(p): p for p in (promises_of(task) if plan.promises else ())}
    untried = {d.key for d in decisive}
    firsts: list[Case] = []
    beyond: list[Case] = []
    waiting = _Waiting(Kinds(task, published, device))
    tried = _tried(published, (), untried, promises)
    hazardous: set[Hashable] = set()
    for case in offered:
        departing = departures(task, case, published)
        new = _tried(case, departing, untried, promises) - tried
        hazards = _hazards(case, departing, plan) - hazardous
        rest = waiting.place_of(case, departing)
        (firsts if new else beyond if hazards else rest).append(case)
        tried |= new
        hazardous |= hazards
    if "empty" in untried - tried and not plan.strategies:
        # Only the strategy of this obligation may come later than that.
        later = generate(task, count=LEAST_OFFERED, **chosen | {"strategies": ("empty",)})
        firsts += [case for case in later if 0 in case.sizes.values()][:1]
    total = max(plan.cases, 1 + len(firsts)) if plan.grows else plan.cases
    more: list[Case] = []
    if any(d.obligation == "attributes" for d in decisive):
        room = min(plan.cases // PAIRED, total - 1 - len(firsts))
        firsts, more = paired(Pairs(task, device), published, firsts, [*waiting], most=room)
    rest = [case for case in waiting if case not in more]
    dealt = [*firsts, *more, *beyond, *rest]
    if not plan.strategies and any(d.obligation == "values" for d in decisive):
        dealt[: total - 1] = _with_new_values(task, published, dealt[: total - 1], waiting.kinds)
    first = len(firsts)
    return Deal(firsts=tuple(dealt[:first]), others=tuple(dealt[first:]), total=total)


def _with_new_values(
    task: Task, published: Case, cases: Sequence[Case], kinds: Kinds
) -> Iterator[Case]:
    """Yield the cases that are judged; those about sizes take values that had no turn.

    Equal values may hide a wrong order of elements, and a long sum of large values may overflow, so
    other layouts and the largest sizes keep ordinary values. So do sums in other dtypes than the
    published one: many draws of one sign show the loss in each partial sum.
    """
    met = {published.recipe, *(case.recipe for case in cases)}
    deck = (recipe for recipe in recipes_of(task) if recipe not in met)
    seen: set[tuple[str, str]] = set()
    for case in cases:
        known = (case.recipe, case.dtype) in seen
        seen.add((case.recipe, case.dtype))
        others = {kind.key for kind in kinds.tried(case, departures(task, case, published))}
        plain = case.strategy in OF_SIZES and case.recipe in ORDINARY and others <= {"values"}
        promised = case.recipe in task.promises.recipes or 0 in case.sizes.values()
        sums = task.sums() and case.dtype != published.dtype
        fresh = next(deck, None) if known and plain and not (promised or sums) else None
        yield case if fresh is None else replace(case, recipe=fresh)


class _Waiting:
    """Cases that try nothing that must come first: values, other kinds, and all else, in turn."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self._met: set[Kind] = set()
        self._specials: Counter[str] = Counter()
        self._values: list[Case] = []
        self._kinds_beside: list[Case] = []
        self._rest: list[Case] = []

    def __iter__(self) -> Iterator[Case]:
        """Yield one of each sort in turn, and then those of the sorts that have more."""
        sorts = zip_longest(self._values, self._kinds_beside, self._rest)
        return (case for several in sorts for case in several if case is not None)

    def place_of(self, case: Case, departing: Sequence[Departure]) -> list[Case]:
        """Return where a case waits; from now on the kinds that it tries are no longer new."""
        new = {*self.kinds.tried(case, departing)} - self._met
        self._met |= new
        special = any(d.obligation == "specials" for d in departing)
        self._specials[case.recipe] += special
        # Some recipes have another turn in half precision, where they tell more.
        if case.strategy == "structured" or {kind.key for kind in new} == {"values"}:
            return self._values
        again = special and self._specials[case.recipe] <= SPECIAL_TURNS
        return self._kinds_beside if new or again else self._rest


class Deals:
    """The latest deals: candidates of one task, judged by one plan, share them."""

    def __init__(self, *, most: int = 256) -> None:
        self._most = most
        # With its task, so that no other task can take its id.
        self._recent: OrderedDict[Hashable, tuple[Task, Deal]] = OrderedDict()

    def deal(
        self,
        task: Task,
        plan: Plan,
        published: Case,
        *,
        device: str,
        blocks: Sequence[int] = (),
        thresholds: Sequence[int] = (),
    ) -> Deal:
        """Return what `deal` returns, made once."""
        about = (id(task), plan, published, device, tuple(blocks), tuple(thresholds))
        if about not in self._recent:
            made = deal(task, plan, published, device=device, blocks=blocks, thresholds=thresholds)
            self._recent[about] = task, made
            if len(self._recent) > self._most:
                self._recent.popitem(last=False)
        self._recent.move_to_end(about)
        return self._recent[about][1]

    def planned_cases(self, task: Task, plan: Plan, device: str) -> int:
        """How many cases are judged of a task before anything is known of the candidate."""
        published = published_case(task, seed=plan.seed, device=device)
        return self.deal(task, plan, published, device=device).total


def _hazards(case: Case, departing: Sequence[Departure], plan: Plan) -> set[Hashable]:
    """What a case tries beyond the contract; the most telling layouts and each special recipe."""
    found: set[Hashable] = set()
    for departure in departing:
        if plan.contract_with_demands.decides(departure):
            continue
        if departure.obligation == "layouts" and case.layout in TELLING_LAYOUTS:
            found.add(case.layout)
        elif departure.obligation == "specials":
            found.add(case.recipe)
        else:
            found.add(departure.key)
    return found


def _tried(
    case: Case,
    departing: Sequence[Departure],
    wanted: Collection[Hashable],
    promises: Mapping[str, Promise],
) -> set[Hashable]:
    """The wanted promises that a case tries."""
    keys = {d.key for d in departing if d.key in wanted}
    return keys | {text for text, promise in promises.items() if promise.tried_by(case)}
