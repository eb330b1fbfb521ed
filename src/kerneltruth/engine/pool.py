"""A pool of judges on this machine: each a process of its own, all sharing one zygote.

The parent hands out jobs and collects outcomes; a lost judge's job goes to another, once.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Protocol, TypeVar

from kerneltruth.errors import EnvironmentFault, InternalError, UserError
from kerneltruth.runner.sandbox import die_with_parent


class Job(Protocol):
    """What a pool can schedule: jobs of one task share expectations, so one judge takes them."""

    @property
    def task(self) -> str:
        """Name of the task."""
        ...


J = TypeVar("J", bound=Job)
R = TypeVar("R")

TRIES = 2
# For so long judges may go on with their jobs when they are to stop.
STOP_S = 5.0
# Jobs taken from the caller ahead of need, among which each judge finds one of its own task.
LOOK_AHEAD = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[J, R]):
    """Event: a job has its result."""

    job: J
    result: R


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Then(Generic[J, R]):
    """A second stage for some results, by one worker of its own: what must not run beside itself.

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
    """Jobs for the second stage, as one."""

    task: str
    items: tuple[tuple[J, R], ...]


class _Second(Generic[J, R]):
    """The second stage as the parent sees it: a queue, and a worker that is made when needed."""

    def __init__(self, then: Then[J, R]) -> None:
        self._then = then
        self._queue: list[tuple[J, R]] = []
        # Of the batch in hand, those without a result.
        self._left: list[tuple[J, R]] = []
        self._tries: dict[int, int] = {}
        self.judge: _Judge[Any, Any] | None = None

    @property
    def busy(self) -> bool:
        return self.judge is not None and self.judge.job is not None

    def takes(self, job: J, result: R) -> bool:
        if not self._then.wanted(job, result):
            return False
        self._queue.append((job, result))
        return True

    def hand_out(self, *, no_more: bool) -> None:
        """Give an idle worker a batch, if there is a whole one or no more will come."""
        enough = 1 if no_more else self._then.batch
        if self.busy or len(self._queue) < enough:
            return
        if self.judge is not None and not self.judge.process.is_alive():
            self.judge.stop()
            self.judge = None
        if self.judge is None:
            self.judge = _Judge(self._work)
        items = self._next(self.judge.last_task)
        del self._queue[: len(items)]
        self._left = list(items)
        self.judge.give(_Batch(task=items[-1][0].task, items=items))

    def _work(self, batch: _Batch[J, R], tell: Callable[[Any], None]) -> None:
        """In the worker's process."""
        for result in self._then.work(batch.items):
            tell(result)

    def _next(self, own: str | None) -> tuple[tuple[J, R], ...]:
        """The first of the queue, after putting it in order for a worker of the task `own`."""
        if id(self._queue[0][0]) in self._tries:
            # With a worker died one of these or another: alone it does not take others along.
            return (self._queue[0],)
        # Those of the task in hand, and then task by task.
        place = {own: -1}
        for position, (job, _) in enumerate(self._queue):
            place.setdefault(job.task, position)
        self._queue.sort(key=lambda item: place[item[0].task])
        return tuple(self._queue[: self._then.batch])

    def listen(self) -> Iterator[Done[J, R]]:
        """Take one message of the worker, or its death."""
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
        again = []
        for job, result in self._left:
            tries = self._tries[id(job)] = self._tries.get(id(job), 0) + 1
            if tries < TRIES:
                again.append((job, result))
                continue
            reason = f"the process that times died twice (exit code {code})"
            yield Done(job=job, result=self._then.lost(job, result, reason))
        self._queue = [*again, *self._queue]


class _Judge(Generic[J, R]):
    """A judge process as the parent sees it."""

    def __init__(self, work: Callable[[J, Callable[[Any], None]], R]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, self.pipe, os.getpid(), work), daemon=True
        )
        self.process.start()
        theirs.close()
        self.job: J | None = None
        self.last_task: str | None = None

    def give(self, job: J) -> None:
        self.job, self.last_task = job, job.task
        self.pipe.send(job)

    def stop(self) -> None:
        _stop([self])

    def dismiss(self) -> None:
        """Tell it to end when its job is done."""
        # Judges forked later hold this pipe's end too, so closing it says nothing: say it.
        with contextlib.suppress(OSError, ValueError):
            self.pipe.send(None)
            self.pipe.close()

    def end(self, seconds: float) -> None:
        """Wait so long for it to end, and no longer."""
        self.process.join(timeout=seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _stop(judges: Sequence[_Judge[Any, Any]], within_s: float | None = None) -> None:
    """Have judges end: all at once, since they may be at work, or waiting for the device."""
    for judge in judges:
        judge.dismiss()
    until = time.monotonic() + (STOP_S if within_s is None else within_s)
    for judge in judges:
        judge.end(max(0.0, until - time.monotonic()))


def _serve(
    pipe: Connection,
    parents_end: Connection,
    parent: int,
    work: Callable[[J, Callable[[Any], None]], R],
) -> None:
    """The judge's side: one job after the other until the parent says to stop."""
    # Judges forked later hold the parent's end of this pipe too, so its death closes nothing.
    die_with_parent(parent)
    # The parent answers Ctrl-C for all.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parents_end.close()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            job = pipe.recv()
            if job is None:
                break
            try:
                result = work(job, lambda news: pipe.send(("progress", news)))
            except (UserError, EnvironmentFault) as error:
                pipe.send(("stopped", error))
                continue
            except Exception as error:
                # Our own bug must reach the parent as one, with the place where it happened.
                import traceback

                pipe.send(("broken", f"{error}\n{traceback.format_exc()}"))
                continue
            pipe.send(("done", result))
    os._exit(0)


def run_jobs(
    jobs: Iterable[J],
    work: Callable[[J, Callable[[Any], None]], R],
    *,
    workers: int,
    then: Then[J, R] | None = None,
    until: float = math.inf,
) -> Iterator[Done[J, R] | Progress[J] | Lost[J]]:
    """Do every job once; yields progress and exactly one `Done` or `Lost` for each.

    Of jobs that are not done at the moment `until`, nothing more is done.

    Args:
        jobs: in order of preference, taken as they are needed; jobs of one task are given to one
            judge where possible.
        work: called in a judge process, which was forked from this one, with a job and a function
            that reports progress.
        workers: the most judges at once.
        then: a second stage, beside the judges.
        until: when judges are ended, on the monotonic clock.

    Raises:
        UserError, EnvironmentFault: `work` raised it.
        InternalError: `work` raised anything else.
    """
    waiting = Waiting(jobs)
    tries: dict[int, int] = {}
    judges: list[_Judge[J, R]] = []
    second = None if then is None else _Second(then)
    try:
        judges = [_Judge(work) for _ in range(min(workers, waiting.ahead()))]
        for judge in judges:
            _hand_out(judge, waiting, judges)
        while True:
            busy = {j.pipe: j for j in judges if j.job is not None}
            if second is not None:
                second.hand_out(no_more=not busy)
            more = [second.judge.pipe] if second and second.judge and second.busy else []
            left = until - time.monotonic()
            if left <= 0 or (not busy and not more):
                break
            for pipe in wait([*busy, *more], None if math.isinf(left) else left):
                if pipe not in busy:
                    assert second is not None
                    yield from second.listen()
                    continue
                judge = busy[pipe]
                for event in _listen(judge, judges, waiting, tries, work):
                    goes_on = (
                        second is not None
                        and isinstance(event, Done)
                        and second.takes(event.job, event.result)
                    )
                    if not goes_on:
                        yield event
    finally:
        last = [] if second is None or second.judge is None else [second.judge]
        _stop([*judges, *last], None if time.monotonic() < until else 0.0)


def _listen(
    judge: _Judge[J, R],
    judges: list[_Judge[J, R]],
    waiting: Waiting[J],
    tries: dict[int, int],
    work: Callable[[J, Callable[[Any], None]], R],
) -> Iterator[Done[J, R] | Progress[J] | Lost[J]]:
    """Take one message of a judge, or its death."""
    job = judge.job
    assert job is not None
    try:
        word, value = judge.pipe.recv()
    except (EOFError, ConnectionError):
        judge.stop()
        tries[id(job)] = tries.get(id(job), 1) + 1
        replacement: _Judge[J, R] = _Judge(work)
        judges[judges.index(judge)] = replacement
        if tries[id(job)] <= TRIES:
            waiting.again(job)
        else:
            code = judge.process.exitcode
            yield Lost(job=job, reason=f"the judge process died twice (exit code {code})")
        _hand_out(replacement, waiting, judges)
        return
    if word == "progress":
        yield Progress(job=job, news=value)
        return
    if word == "stopped":
        raise value
    if word == "broken":
        raise InternalError(f"while judging {job}: {value}")
    # First the next job: the caller stores the result meanwhile.
    _hand_out(judge, waiting, judges)
    yield Done(job=job, result=value)


class Waiting(Generic[J]):
    """Jobs that nobody has been given, and where further ones come from."""

    def __init__(self, jobs: Iterable[J]) -> None:
        self._source = iter(jobs)
        self._jobs: list[J] = []

    def ahead(self) -> int:
        """How many are at hand, after looking ahead."""
        missing = LOOK_AHEAD - len(self._jobs)
        self._jobs += itertools.islice(self._source, max(0, missing))
        return len(self._jobs)

    def again(self, job: J) -> None:
        """Put a job back before all others."""
        self._jobs.insert(0, job)

    def take(self, own: str | None, taken: Collection[str | None]) -> J | None:
        """A job of the task `own`, else of a task that is not taken, else the first."""
        if not self.ahead():
            return None
        mine = (i for i, job in enumerate(self._jobs) if job.task == own)
        free = (i for i, job in enumerate(self._jobs) if job.task not in taken)
        return self._jobs.pop(next(mine, next(free, 0)))


def _hand_out(judge: _Judge[J, R], waiting: Waiting[J], judges: list[_Judge[J, R]]) -> None:
    """Give an idle judge the next job: of its own task, else of a task that nobody is at."""
    judge.job = None
    taken = {j.last_task for j in judges if j is not judge and j.job is not None}
    job = waiting.take(judge.last_task, taken)
    if job is not None:
        judge.give(job)
