"""Rates by dtype: in each, an attempt is right, failed or open. Pure.

An attempt is right in a dtype if it holds every decisive obligation that is not about dtypes, and
the dtype's own: `dtypes.float16`, or `published` for the dtype of the published inputs. It failed
if it breaks or refuses one of these, and is open if one was not tried. An attempt is therefore
never right in more dtypes than its verdict allows, and hazards count in their own dtype alone.

Open attempts are no random sample. Where there are any, a share is given by its two bounds: as if
no open attempt were right, and as if all were. Without any the two are the same, and unbiased.

Earlier versions stopped at the first failure and made no profile. Their attempts failed in the
dtype of that failure, and are open in the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kerneltruth.analysis.groups import DIMENSIONS, DTYPE, Group, by_task, labels, ordered
from kerneltruth.analysis.intervals import rate_of_counts, unknown_rate
from kerneltruth.analysis.results import Result
from kerneltruth.documents.estimates import GroupLabels, RateRecord
from kerneltruth.documents.profiles import FAILING
from kerneltruth.documents.rates import StageRates

STAGES = ("call", "exe", "perf")
OF_DTYPE = "dtypes."
DtypeOutcome = Literal["right", "failed", "open"]

# What is counted of each task, in the order of its counts.
_COUNTED = ("attempts", "call", "exe", "perf", "call_most", "exe_most", "failed")


def outcome_in(result: Result, dtype: str) -> DtypeOutcome:
    """Return how an attempt ends in a dtype of its task."""
    return _by_profile(result, dtype) if result.has_profile else _by_counts(result, dtype)


def _by_profile(result: Result, dtype: str) -> DtypeOutcome:
    profile = result.profile
    deciding = {k: p.status for k, p in profile.items() if p.decisive}
    if result.judged and not result.correct and not any(s in FAILING for s in deciding.values()):
        # It does not load, or is wrong only while it is timed, which no obligation covers.
        return "failed"
    own = profile.get(f"{OF_DTYPE}{dtype}") or profile.get("published")
    statuses = [status for key, status in deciding.items() if not key.startswith(OF_DTYPE)]
    statuses.append("not_tried" if own is None else own.status)
    if any(status in FAILING for status in statuses):
        return "failed"
    return "right" if all(status == "held" for status in statuses) else "open"


def _by_counts(result: Result, dtype: str) -> DtypeOutcome:
    count = result.dtypes.get(dtype)
    if result.correct:
        return "right" if count is not None and count.returned else "open"
    failed = count.failed > 0 if count is not None else not _loads(result)
    return "failed" if result.judged and failed else "open"


def _loads(result: Result) -> bool:
    return bool(result.dtypes) or result.called


def _may_return(result: Result, dtype: str) -> bool:
    """Whether no case of the dtype is known to have ended before the call returned."""
    count = result.dtypes.get(dtype)
    if count is None:
        return _loads(result) or not result.judged
    return count.returned > 0 or not count.failed


def dtypes_of(result: Result) -> Iterator[str]:
    """Yield the dtypes that an attempt knows of its task, some of them twice."""
    yield from result.dtypes
    for key in result.profile:
        if key.startswith(OF_DTYPE):
            yield key.removeprefix(OF_DTYPE)


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
        outcome = outcome_in(result, dtype)
        right, failed = outcome == "right", outcome == "failed"
        timing = result.timing
        timed = timing is not None and any(shape.dtype == dtype for shape in timing.shapes)
        most = _may_return(result, dtype), not failed
        row = self.tasks.setdefault(result.task, [0] * len(_COUNTED))
        for place, counts in enumerate((True, returned, right, timed, *most, failed)):
            row[place] += counts
        self.not_judged += outcome == "open" and not result.judged
        self.stopped_before += outcome == "open" and result.judged
        for stage in STAGES:
            self.not_tried[stage] += not result.tried(stage)

    def merge(self, other: _Counts) -> None:
        """Add the counts of other attempts."""
        for task, more in other.tasks.items():
            own = self.tasks.get(task)
            self.tasks[task] = (
                more if own is None else [a + b for a, b in zip(own, more, strict=True)]
            )
        self.not_judged += other.not_judged
        self.stopped_before += other.stopped_before
        self.not_tried.update(other.not_tried)

    def rate(self, name: str) -> RateRecord:
        """The rate of one count among all attempts."""
        place = _COUNTED.index(name)
        return rate_of_counts([(row[place], row[0]) for row in self.tasks.values()])


class DtypeRates:
    """Counts by dtype and other dimensions, from which rows by any of these are made.

    An attempt counts in every dtype of its task: those that are known of it, and those that any
    attempt at it knows.
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
                dict.fromkeys((*known.get(task, ()), *(d for r in members for d in dtypes_of(r))))
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
        load=None,
        compile=None,
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
