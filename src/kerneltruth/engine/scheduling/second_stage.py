"""Run a second stage for some results with one worker: work that must not run in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kerneltruth.engine.scheduling.judge_process import JudgeProcess
from kerneltruth.engine.scheduling.scheduler import Done, J
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
        again = []
        for job, result in self._left:
            tries = self._tries[id(job)] = self._tries.get(id(job), 0) + 1
            if tries < TRIES:
                again.append((job, result))
                continue
            reason = f"the process that times died twice (exit code {code})"
            yield Done(job=job, result=self._then.lost(job, result, reason))
        self._queue = [*again, *self._queue]
