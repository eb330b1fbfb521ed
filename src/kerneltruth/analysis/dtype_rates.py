"""Rates by dtype: an attempt is judged in several, and ends at its first failure. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kerneltruth.analysis.groups import DIMENSIONS, DTYPE, Group, by_task, ordered
from kerneltruth.analysis.intervals import Rate, rate
from kerneltruth.analysis.results import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """The stages of one group: each counts those that passed it, of all attempts.

    Attributes:
        group: values of the dimensions asked for; None where a result has no value.
        tasks: how many tasks the attempts are for.
        not_judged: attempts that say nothing of their candidate (`unsupported_here` and the like).
        stopped_before: by dtype only: attempts that failed in another dtype before they came to a
            case of this one. They are not among `attempts`.
    """

    group: Group
    attempts: int
    tasks: int
    call: Rate
    exe: Rate
    perf: Rate
    not_judged: int
    stopped_before: int = 0


@dataclass(slots=True)
class _Counts:
    """Of the attempts of one group in one dtype, as they are gathered."""

    attempts: int = 0
    call: int = 0
    exe: int = 0
    perf: int = 0
    not_judged: int = 0
    stopped_before: int = 0
    tasks: set[str] = field(default_factory=set)

    def add(self, result: Result, dtype: str) -> None:
        """Count an attempt at a task of that dtype."""
        count = result.dtypes.get(dtype)
        if count is None and result.called:
            self.stopped_before += 1
            return
        self.attempts += 1
        self.tasks.add(result.task)
        self.not_judged += not result.judged
        if count is not None:
            self.call += count.returned > 0
            self.exe += count.failed == 0
        if result.timing is not None:
            self.perf += any(shape.dtype == dtype for shape in result.timing.shapes)

    def merge(self, other: _Counts) -> None:
        """Take in the counts of other attempts."""
        self.attempts += other.attempts
        self.call += other.call
        self.exe += other.exe
        self.perf += other.perf
        self.not_judged += other.not_judged
        self.stopped_before += other.stopped_before
        self.tasks |= other.tasks


class DtypeRates:
    """Counts by dtype and other dimensions, from which rows by any of these are made.

    An attempt counts in each dtype that it was judged in, and one that never ran counts in every
    dtype of its task.
    """

    def __init__(self, results: Sequence[Result], by: Iterable[str]) -> None:
        self._dimensions = tuple(dict.fromkeys(name for name in by if name != DTYPE))
        readers = [DIMENSIONS[name] for name in self._dimensions]
        of_task = {
            task: tuple(dict.fromkeys(d for r in members for d in r.dtypes))
            for task, members in by_task(results).items()
        }
        self._counts: dict[Group, _Counts] = {}
        for result in results:
            group = tuple(read(result) for read in readers)
            for dtype in of_task[result.task]:
                self._counts.setdefault((*group, dtype), _Counts()).add(result, dtype)

    def rows(self, by: Sequence[str]) -> tuple[RateRow, ...]:
        """The rows by some of the dimensions, dtype among them."""
        names = (*self._dimensions, DTYPE)
        places = [names.index(name) for name in by]
        found: dict[Group, _Counts] = {}
        for group, counts in self._counts.items():
            found.setdefault(tuple(group[i] for i in places), _Counts()).merge(counts)
        return tuple(_row(group, found[group]) for group in ordered(found))


def _row(group: Group, counts: _Counts) -> RateRow:
    return RateRow(
        group=group,
        attempts=counts.attempts,
        tasks=len(counts.tasks),
        call=rate(counts.call, counts.attempts),
        exe=rate(counts.exe, counts.attempts),
        perf=rate(counts.perf, counts.attempts),
        not_judged=counts.not_judged,
        stopped_before=counts.stopped_before,
    )
