"""Rates by dtype, where judging ends at the first failure. Pure.

An attempt's result in a dtype that it did not finish is unknown, and cannot be estimated: kernels
that fail in one dtype are no sample of those that do not. Each share is therefore given by its two
bounds: as if no unfinished attempt were right, and as if all were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kerneltruth.analysis.groups import DIMENSIONS, DTYPE, Group, by_task, labels, ordered
from kerneltruth.analysis.intervals import rate_of_counts, unknown_rate
from kerneltruth.analysis.results import Result
from kerneltruth.documents.estimates import GroupLabels, RateRecord
from kerneltruth.documents.rates import StageRates

STAGES = ("call", "exe", "perf")


# What is counted of each task, in the order of its counts.
_COUNTED = ("attempts", "call", "exe", "perf", "call_most", "exe_most", "failed")


@dataclass(slots=True)
class _Counts:
    """Counts of one group's attempts in one dtype, with a row for each task."""

    tasks: dict[Hashable, list[int]] = field(default_factory=dict)
    not_judged: int = 0
    stopped_before: int = 0
    not_tried: Counter[str] = field(default_factory=Counter)

    def add(self, result: Result, dtype: str) -> None:
        """Count an attempt at a task of that dtype."""
        count = result.dtypes.get(dtype)
        returned = count is not None and count.returned > 0
        # A kernel that does not load fails in every dtype.
        loads = bool(result.dtypes) or result.called
        failed = result.judged and (count.failed > 0 if count else not loads)
        held = result.correct and returned
        timing = result.timing
        timed = timing is not None and any(shape.dtype == dtype for shape in timing.shapes)
        most = returned or not failed, not failed
        row = self.tasks.setdefault(result.task, [0] * len(_COUNTED))
        for place, counts in enumerate((True, returned, held, timed, *most, failed)):
            row[place] += counts
        self.not_judged += not result.judged
        self.stopped_before += result.judged and not failed and not held
        for stage in STAGES:
            self.not_tried[stage] += not result.tried(stage)

    def merge(self, other: _Counts) -> None:
        """Take in the counts of other attempts."""
        for task, more in other.tasks.items():
            own = self.tasks.get(task)
            self.tasks[task] = (
                more if own is None else [a + b for a, b in zip(own, more, strict=True)]
            )
        self.not_judged += other.not_judged
        self.stopped_before += other.stopped_before
        self.not_tried.update(other.not_tried)

    def rate(self, name: str) -> RateRecord:
        """One of what is counted, of all attempts."""
        place = _COUNTED.index(name)
        return rate_of_counts([(row[place], row[0]) for row in self.tasks.values()])


class DtypeRates:
    """Counts by dtype and other dimensions, from which rows by any of these are made.

    An attempt counts in every dtype of its task: those that are known of it, and those that any
    attempt at it came to.
    """

    def __init__(
        self,
        results: Sequence[Result],
        by: Iterable[str],
        dtypes: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._dimensions = tuple(dict.fromkeys(name for name in by if name != DTYPE))
        readers = [DIMENSIONS[name] for name in self._dimensions]
        known = dtypes or {}
        of_task = {
            task: tuple(
                dict.fromkeys((*known.get(task, ()), *(d for r in members for d in r.dtypes)))
            )
            for task, members in by_task(results).items()
        }
        self._counts: dict[Group, _Counts] = {}
        for result in results:
            group = tuple(read(result) for read in readers)
            for dtype in of_task[result.task]:
                self._counts.setdefault((*group, dtype), _Counts()).add(result, dtype)

    def rows(self, by: Sequence[str]) -> tuple[StageRates, ...]:
        """Return the rows by some of the dimensions, dtype among them."""
        names = (*self._dimensions, DTYPE)
        places = [names.index(name) for name in by]
        found: dict[Group, _Counts] = {}
        for group, counts in self._counts.items():
            found.setdefault(tuple(group[i] for i in places), _Counts()).merge(counts)
        return tuple(_row(labels(by, group), found[group]) for group in ordered(found))


def _row(group: GroupLabels, counts: _Counts) -> StageRates:
    attempts = sum(row[0] for row in counts.tasks.values())
    stages = {
        name: unknown_rate(attempts)
        if counts.not_tried[name.removesuffix("_most")] == attempts
        else counts.rate(name)
        for name in _COUNTED[1:-1]
    }
    # Kernels are timed in one dtype of their task: the others never come to it.
    if not stages["perf"].numerator:
        stages["perf"] = unknown_rate(attempts)
    return StageRates(
        **group,
        attempts=attempts,
        tasks=len(counts.tasks),
        call=stages["call"],
        exe=stages["exe"],
        perf=stages["perf"],
        not_judged=counts.not_judged,
        not_tried=dict(counts.not_tried),
        stopped_before=counts.stopped_before,
        failed=counts.rate("failed"),
        call_most=stages["call_most"],
        exe_most=stages["exe_most"],
    )
