"""The protocol of schedulers: jobs go in, and a stream of events comes out."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

# Jobs taken from the caller ahead of need, among which each judge finds one of its own task.
LOOK_AHEAD = 256
# Judging is mostly CPU work, so this many judges share a GPU.
JUDGES_PER_GPU = 8


class Job(Protocol):
    """What can be scheduled: jobs of one task share expectations, so one judge takes them."""

    @property
    def task(self) -> str:
        """Name of the task."""
        ...


J = TypeVar("J", bound=Job)
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[J, R_co]):
    """Event: a job has its result."""

    job: J
    result: R_co


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(Generic[J]):
    """Event: a job reports something, mostly how many more cases."""

    job: J
    news: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(Generic[J]):
    """Event: a job's judges died; it has no result."""

    job: J
    reason: str


class Scheduler(Protocol[J, R_co]):
    """Does jobs: `LocalPool` on this machine, `RayCluster` on others."""

    def run(self, jobs: Iterable[J]) -> Iterator[Done[J, R_co] | Progress[J] | Lost[J]]:
        """Do every job once; yields progress, and exactly one `Done` or `Lost` for each.

        Closing the iterator ends what is at work.

        Jobs, in order of preference, are taken as they are needed; jobs of one task go to one judge
        where possible.

        Raises:
            UserError, EnvironmentFault: a job raised it.
            InternalError: a job raised anything else.
        """
        ...


def judges_at_once(wanted: int | None) -> int:
    """Return how many judges work on this machine: as many as wanted, else one per core."""
    return wanted or len(os.sched_getaffinity(0))


class Waiting(Generic[J]):
    """Jobs not handed out yet, and the source of further ones."""

    def __init__(self, jobs: Iterable[J]) -> None:
        self._source = iter(jobs)
        self._jobs: list[J] = []

    def ahead(self) -> int:
        """Return how many jobs are at hand, after looking ahead."""
        missing = LOOK_AHEAD - len(self._jobs)
        self._jobs += itertools.islice(self._source, max(0, missing))
        return len(self._jobs)

    def put_back(self, job: J) -> None:
        """Put a job back before all others."""
        self._jobs.insert(0, job)

    def take(self, own: str | None, taken: Collection[str | None]) -> J | None:
        """Take a job of the task `own`, else of a task that is not taken, else the first."""
        if not self.ahead():
            return None
        mine = (i for i, job in enumerate(self._jobs) if job.task == own)
        free = (i for i, job in enumerate(self._jobs) if job.task not in taken)
        return self._jobs.pop(next(mine, next(free, 0)))
