"""Shrink a failing value while it keeps failing. Knows nothing about kernels.

A pass is a function from a value to simpler ones. Each pass runs to its own fixpoint, and the
passes repeat until none makes progress. A pass is therefore not repeated after every step of
another, which matters because every evaluation runs something.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Pass = Callable[[T], Iterable[T]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimizeBudget:
    """How much to spend: evaluations of the predicate, and seconds by the given clock.

    `first_s` is how long to continue if nothing simpler was found in these seconds.
    """

    evaluations: int
    seconds: float
    clock: Callable[[], float]
    first_s: float = 0.0

    def __post_init__(self) -> None:
        if self.evaluations < 0 or not self.seconds >= 0:
            raise ValueError(f"a budget is not negative, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk(Generic[T]):
    """The result of shrinking.

    Attributes:
        value: the simplest failing value found.
        evaluations: how often the predicate ran.
        exhausted: the budget ended the search, so a simpler failing value may well exist.
        trail: every value accepted, the given one first.
    """

    value: T
    evaluations: int
    exhausted: bool
    trail: tuple[T, ...]


class _OutOfBudgetError(Exception):
    pass


@dataclass(slots=True, kw_only=True)
class _Search(Generic[T]):
    fails: Callable[[T], bool]
    key: Callable[[T], Any]
    budget: MinimizeBudget
    started: float
    known: dict[Hashable, bool] = field(default_factory=dict)
    evaluations: int = 0
    simpler: bool = False

    def ask(self, value: T) -> bool:
        identity = self.key(value)
        if identity not in self.known:
            allowed = self.budget.seconds
            if not self.simpler:
                allowed = max(allowed, self.budget.first_s)
            late = self.budget.clock() - self.started >= allowed
            if late or self.evaluations >= self.budget.evaluations:
                raise _OutOfBudgetError
            self.evaluations += 1
            self.known[identity] = self.fails(value)
        return self.known[identity]

    def step(self, value: T, simpler: Pass[T]) -> T | None:
        """Return the first value of a pass that is simpler and fails too."""
        here = self.key(value)
        return next((v for v in simpler(value) if self.key(v) < here and self.ask(v)), None)


def minimize(
    value: T,
    simpler: Pass[T] | Sequence[Pass[T]],
    fails: Callable[[T], bool],
    *,
    key: Callable[[T], Any],
    budget: MinimizeBudget,
) -> Shrunk[T]:
    """Shrink `value`, which is known to fail and is not tested again.

    Greedy: a pass restarts from each accepted value, and the search ends at a value of which no
    pass offers a simpler failing one. Only values that are strictly smaller by `key` are accepted,
    so the search ends whatever the passes yield. The same arguments give the same result, unless
    the seconds run out.

    Args:
        value: the failing value to start from.
        simpler: one pass, or several in the order in which to try them.
        fails: returns whether a value shows the fault; called once for each key.
        key: a hashable total order, simplest least; equal keys mean the same value.
        budget: when to stop.
    """
    passes = [simpler] if callable(simpler) else list(simpler)
    search = _Search(fails=fails, key=key, budget=budget, started=budget.clock())
    search.known[key(value)] = True
    trail = [value]
    exhausted = False
    try:
        progress = True
        while progress:
            before = len(trail)
            for one in passes:
                while (found := search.step(trail[-1], one)) is not None:
                    trail.append(found)
                    search.simpler = True
            progress = len(trail) > before
    except _OutOfBudgetError:
        exhausted = True
    return Shrunk(
        value=trail[-1],
        evaluations=search.evaluations,
        exhausted=exhausted,
        trail=tuple(trail),
    )
