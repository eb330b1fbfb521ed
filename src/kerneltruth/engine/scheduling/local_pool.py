"""Run a pool of judge processes on this machine, all sharing one zygote.

The parent hands out jobs and collects results. If a judge dies, its job is tried once more. A
second stage for some results has one worker: it is for work that must not run in parallel.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from kerneltruth.engine.scheduling.judge_process import STOP_S, JudgeProcess, stop
from kerneltruth.engine.scheduling.scheduler import Done, J, Lost, Progress, Waiting
from kerneltruth.errors import InternalError

R = TypeVar("R")

# Give up a job after this many deaths of its worker.
TRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Then(Generic[J, R]):
    """A second stage for some results, with one worker: work that must not run in parallel.

    Attributes:
        wanted: whether a result goes on.
        work: called in the worker's process with some jobs and their results, gives one after the
            other the results that take their place.
        lost: the result of a job whose worker died twice.
        batch: the most jobs at once, those of one task together; while there are fewer and judges
            are at work, more are waited for.
    """

    wanted: Callable[[J, R], bool]
    work: Callable[[Sequence[tuple[J, R]]], Iterable[R]]
    lost: Callable[[J, R, str], R]
    batch: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch(Generic[J, R]):
    task: str
    items: tuple[tuple[J, R], ...]


class SecondStage(Generic[J, R]):
    """The second stage as the parent sees it: a queue, and a worker that is made when needed."""

    def __init__(self, then: Then[J, R]) -> None:
        self._then = then
        self._queue: list[tuple[J, R]] = []
        # The jobs of the current batch that have no result yet.
        self._left: list[tuple[J, R]] = []
        self._tries: dict[int, int] = {}
        self.judge: JudgeProcess[Any, Any] | None = None

    @property
    def busy(self) -> bool:
        """Return whether a batch is being worked on."""
        return self.judge is not None and self.judge.job is not None

    def takes(self, job: J, result: R) -> bool:
        """Queue a result if it goes on; return whether it does."""
        if not self._then.wanted(job, result):
            return False
        self._queue.append((job, result))
        return True

    def hand_out(self, *, no_more: bool) -> None:
        """Give an idle worker a batch, if one is complete or no more results will come."""
        enough = 1 if no_more else self._then.batch
        if self.busy or len(self._queue) < enough:
            return
        if self.judge is not None and not self.judge.process.is_alive():
            self.judge.stop()
            self.judge = None
        if self.judge is None:
            self.judge = JudgeProcess(self._work)
        items = self._next(self.judge.last_task)
        del self._queue[: len(items)]
        self._left = list(items)
        self.judge.give(_Batch(task=items[-1][0].task, items=items))

    def _work(self, batch: _Batch[J, R], tell: Callable[[Any], None]) -> None:
        for result in self._then.work(batch.items):
            tell(result)

    def _next(self, own: str | None) -> tuple[tuple[J, R], ...]:
        """Sort the queue for a worker of the task `own` and return its first batch."""
        if id(self._queue[0][0]) in self._tries:
            # One of these jobs may have killed the worker: run alone, it takes no other with it.
            return (self._queue[0],)
        # First the jobs of the current task, then task by task.
        place = {own: -1}
        for position, (job, _) in enumerate(self._queue):
            place.setdefault(job.task, position)
        self._queue.sort(key=lambda item: place[item[0].task])
        return tuple(self._queue[: self._then.batch])

    def listen(self) -> Iterator[Done[J, R]]:
        """Handle one message of the worker, or its death."""
        assert self.judge is not None
        assert self.judge.job is not None
        try:
            word, value = self.judge.pipe.recv()
        except (EOFError, ConnectionError):
            yield from self._died()
            return
        if word == "stopped":
            raise value
        if word == "broken":
            raise InternalError(f"in the second stage: {value}")
        if word == "progress":
            job, _ = self._left.pop(0)
            self._tries.pop(id(job), None)
            yield Done(job=job, result=value)
        if word == "done":
            assert not self._left
            self.judge.job = None

    def _died(self) -> Iterator[Done[J, R]]:
        assert self.judge is not None
        self.judge.stop()
        code = self.judge.process.exitcode
        self.judge = None
        retried = []
        for job, result in self._left:
            tries = self._tries[id(job)] = self._tries.get(id(job), 0) + 1
            if tries < TRIES:
                retried.append((job, result))
                continue
            reason = f"the process that times died twice (exit code {code})"
            yield Done(job=job, result=self._then.lost(job, result, reason))
        self._queue = [*retried, *self._queue]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPool(Generic[J, R]):
    """A scheduler of processes.

    Attributes:
        work: called in a judge process, which was forked from this one, with a job and a function
            that reports progress.
        until: when judges are ended, on the monotonic clock; jobs that are not done by then have
            no event.
        stop_s: for so long judges may go on with their jobs when they are to stop.
    """

    work: Callable[[J, Callable[[Any], None]], R]
    workers: int
    then: Then[J, R] | None = None
    until: float = math.inf
    stop_s: float = STOP_S

    def run(self, jobs: Iterable[J]) -> Iterator[Done[J, R] | Progress[J] | Lost[J]]:
        """Do every job once: see `Scheduler.run`."""
        yield from LocalPools(pools=(self,)).run(jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPools(Generic[J, R]):
    """Several pools, such as one for each GPU, that take their jobs from the same ones.

    The first pool's `until` is that of all.
    """

    pools: Sequence[LocalPool[J, R]]

    def run(self, jobs: Iterable[J]) -> Iterator[Done[J, R] | Progress[J] | Lost[J]]:
        """Do every job once, in one of the pools: see `Scheduler.run`."""
        waiting = Waiting(jobs)
        parts = [_PoolJudges(pool, waiting) for pool in self.pools]
        try:
            for part in parts:
                part.begin()
            yield from self._events(parts)
        finally:
            for part in parts:
                part.close()

    def _events(
        self, parts: Sequence[_PoolJudges[J, R]]
    ) -> Iterator[Done[J, R] | Progress[J] | Lost[J]]:
        """Yield what comes of the jobs, until all are done or the time is over."""
        until = self.pools[0].until
        while pipes := {pipe: part for part in parts for pipe in part.pipes()}:
            left = until - time.monotonic()
            if left <= 0:
                return
            for pipe in wait(list(pipes), None if math.isinf(left) else left):
                assert isinstance(pipe, Connection)
                yield from pipes[pipe].take(pipe)


class _PoolJudges(Generic[J, R]):
    """The judges of a pool, and the jobs that none of them has been given."""

    def __init__(self, pool: LocalPool[J, R], waiting: Waiting[J]) -> None:
        self._pool = pool
        self._waiting = waiting
        self._tries: dict[int, int] = {}
        self._judges: list[JudgeProcess[J, R]] = []
        self._second = None if pool.then is None else SecondStage(pool.then)

    def begin(self) -> None:
        """Give a job to each judge that there is one for."""
        for _ in range(min(self._pool.workers, self._waiting.ahead())):
            self._judges.append(JudgeProcess(self._pool.work))
        for judge in self._judges:
            self._hand_out(judge)

    def close(self) -> None:
        """End all judges."""
        second = self._second and self._second.judge
        late = time.monotonic() >= self._pool.until
        stop([*self._judges, *([second] if second else [])], 0.0 if late else self._pool.stop_s)

    def pipes(self) -> list[Connection]:
        """Return the pipes of the judges at work."""
        busy = [judge.pipe for judge in self._judges if judge.job is not None]
        if self._second is not None:
            self._second.hand_out(no_more=not busy)
            if self._second.judge and self._second.busy:
                busy.append(self._second.judge.pipe)
        return busy

    def take(self, pipe: object) -> Iterator[Done[J, R] | Progress[J] | Lost[J]]:
        """Handle one message, or the death of its sender."""
        judge = next((j for j in self._judges if j.pipe is pipe), None)
        if judge is None:
            assert self._second is not None
            yield from self._second.listen()
            return
        event = self._message(judge)
        goes_on = (
            self._second is not None
            and isinstance(event, Done)
            and self._second.takes(event.job, event.result)
        )
        if event is not None and not goes_on:
            yield event

    def _message(self, judge: JudgeProcess[J, R]) -> Done[J, R] | Progress[J] | Lost[J] | None:
        job = judge.job
        assert job is not None
        try:
            word, value = judge.pipe.recv()
        except (EOFError, ConnectionError):
            return self._replace(judge, job)
        if word == "progress":
            return Progress(job=job, news=value)
        if word == "stopped":
            raise value
        if word == "broken":
            raise InternalError(f"while judging {job}: {value}")
        # Assign the next job first: the caller stores the result while the judge works.
        self._hand_out(judge)
        return Done(job=job, result=value)

    def _replace(self, judge: JudgeProcess[J, R], job: J) -> Lost[J] | None:
        """Replace a dead judge; its job is tried again, or lost."""
        judge.stop()
        replacement: JudgeProcess[J, R] = JudgeProcess(self._pool.work)
        self._judges[self._judges.index(judge)] = replacement
        deaths = self._tries[id(job)] = self._tries.get(id(job), 0) + 1
        if deaths < TRIES:
            self._waiting.put_back(job)
        self._hand_out(replacement)
        if deaths < TRIES:
            return None
        code = judge.process.exitcode
        return Lost(job=job, reason=f"the judge process died twice (exit code {code})")

    def _hand_out(self, judge: JudgeProcess[J, R]) -> None:
        """Give an idle judge a job of its own task, otherwise of a task that no judge works on."""
        judge.job = None
        taken = {j.last_task for j in self._judges if j is not judge and j.job is not None}
        job = self._waiting.take(judge.last_task, taken)
        if job is not None:
            judge.give(job)
