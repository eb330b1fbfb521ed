"""Cache the baselines of tasks: the one timed now, and those that wait for another turn."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.schedule.background_work import BackgroundWork
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.engine.benchmark.baselines import BaselineProcesses, in_parallel, process_of
from kerneltruth.engine.benchmark.memory import CONTEXT_BYTES, DeviceMemory, memory_of
from kerneltruth.engine.benchmark.task_baselines import TaskBaselines
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.languages import NEEDS_A_GPU
from kerneltruth.tasks.spec import Task

# The most tasks with live baselines, and the share of the device's memory (one part in this many)
# for those that wait.
MOST_AT_ONCE = 16
WAITING_SHARE = 2
# Memory that a waiting baseline holds beside its process's context.
WAITING_BYTES = 2**28
# Prepare no further task while less than this share of the device's memory is free.
FREE_SHARE = 1 / 3
# A task's name, the dtype, and its shapes: other shapes have other baselines.
BaselineKey = tuple[str, str | None, str]


class BaselineCache:
    """The turns that tasks take on one device.

    A task's baselines survive its turn, without their input buffers, while there is room for all.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        baselines: tuple[str, ...],
        seed: int,
        sources: Callable[[Task], dict[str, Candidate]],
        most: int = MOST_AT_ONCE,
        memory: DeviceMemory | None = None,
        make: Callable[..., TaskBaselines] = TaskBaselines,
    ) -> None:
        """Start no process yet.

        At most `most` tasks have live baselines at a time; without `memory` the device is asked.
        """
        self._runner = runner
        self._baselines = baselines
        self._processes = BaselineProcesses(runner)
        self._seed = seed
        self._sources = sources
        self._most = most
        self._make = make
        self.memory = memory or memory_of(runner.device)
        # The current task and the waiting ones, longest wait first.
        self._task_baselines: dict[BaselineKey, TaskBaselines] = {}
        self._key: BaselineKey | None = None
        # Tasks that had a turn since they were prepared: no known need for them remains.
        self._had: set[BaselineKey] = set()
        # Tasks being prepared, or prepared and still without a turn, in the order of their turns.
        self._coming: dict[BaselineKey, Future[None]] = {}
        self._threads = ThreadPoolExecutor(max(2, len(os.sched_getaffinity(0))))
        self.background = BackgroundWork(finish=self.memory.finish)

    @property
    def capacity(self) -> int:
        """Return how many tasks may have live baselines, so that all have room."""
        if not self.memory.total:
            return self._most
        room = self.memory.total // WAITING_SHARE
        processes = {process_of(name) for name in self._baselines}
        held = CONTEXT_BYTES * len(processes) + WAITING_BYTES * len(self._baselines)
        held = max(held, CONTEXT_BYTES)
        return max(1, min(self._most, room // held))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Return the tasks with live baselines, longest wait first."""
        return tuple(name for name, *_ in self._task_baselines)

    def begin(self, task: Task, dtype: str | None = None) -> TaskBaselines:
        """Make this task the current one, once it is ready; the previous one waits."""
        task_baselines, key = self._made(task, dtype), _key_of(task, dtype)
        if key != self._key:
            self._put_down()
            self._task_baselines[key] = self._task_baselines.pop(key)
            self._key = key
            self._end_beyond_room((key,))
            self._await(key)
            if (following := next(iter(self._coming), None)) is not None:
                self._compute_references(following)
        self._await(key)
        return task_baselines

    def ready(self, tasks: Iterable[Task], effort: Effort) -> None:
        """Prepare the baselines of the next tasks, side by side, and wait for them.

        Prepares as many as the device has memory for; the others follow in their turn. The
        baselines of the current task restart if any of them was lost.
        """
        tasks = tuple(tasks)
        keys = [_key_of(task, None) for task in tasks]
        if self._key not in keys or not self._task_baselines[self._key].whole:
            self._put_down()
        self._begin_to_prepare(tasks, effort)
        wait([self._coming[key] for key in keys])

    def prepare_in_background(self, tasks: Iterable[Task], effort: Effort) -> None:
        """Prepare them while others are timed; they are paused during batches."""
        others = [task for task in tasks if _key_of(task, None) != self._key]
        self._begin_to_prepare(others, effort)

    def _begin_to_prepare(self, tasks: Sequence[Task], effort: Effort) -> None:
        keys = [_key_of(task, None) for task in tasks]
        coming = [self._made(task, None) for task in tasks]
        self._end_beyond_room(keys)
        if not self._room():
            # No known need for the others remains.
            self._end([k for k in self._waiting() if k in self._had and k not in keys])
        self._had.difference_update(keys)
        for key, task_baselines in zip(keys, coming, strict=True):
            if key not in self._coming or self._coming[key].done():
                self._coming[key] = self._threads.submit(self._prepare_now, task_baselines, effort)

    def _prepare_now(self, task_baselines: TaskBaselines, effort: Effort) -> None:
        task_baselines.warm_up(effort, room=self._room)
        with self.background.work():
            self.memory.release()

    def _compute_references(self, key: BaselineKey) -> None:
        """Compute all expected results of the next task: that may take much memory."""
        task_baselines, ready = self._task_baselines[key], self._coming[key]

        def compute_references() -> None:
            ready.result()
            task_baselines.compute_references(room=self._room)

        self._coming[key] = self._threads.submit(compute_references)

    def _await(self, key: BaselineKey) -> None:
        begun = self._coming.pop(key, None)
        if begun is not None:
            # A failure here is reported when the result is needed.
            with contextlib.suppress(MemoryError, RuntimeError):
                begun.result()

    def _waiting(self) -> list[BaselineKey]:
        return [key for key in self._task_baselines if key != self._key]

    def _room(self) -> bool:
        return self.memory.free >= FREE_SHARE * self.memory.total

    def free_memory(self) -> bool:
        """End baselines of waiting tasks; return whether there were any.

        Ends those of all tasks that had their turn, and of the last half of the others.
        """
        self.memory.release()
        waiting = self._waiting()
        had = [key for key in waiting if key in self._had]
        self._end(had or waiting[len(waiting) // 2 :])
        self._processes.end_idle()
        return bool(waiting)

    def close(self, *, wait: bool = False) -> None:
        """End all baselines; without `wait`, only request it."""
        self._key = None
        for begun in self._coming.values():
            begun.cancel()
        self._coming.clear()
        ending, self._task_baselines = self._task_baselines, {}
        in_parallel(partial(task_baselines.close, wait=wait) for task_baselines in ending.values())
        self._processes.end_idle(wait=wait)

    def _end(self, keys: Sequence[BaselineKey]) -> None:
        """End the baselines of these tasks; their processes become available to others."""
        ending = [self._task_baselines.pop(key) for key in keys]
        for key in keys:
            self._coming.pop(key, None)
        in_parallel(task_baselines.leave for task_baselines in ending)

    def _end_beyond_room(self, kept: Collection[BaselineKey]) -> None:
        """End the baselines that have waited longest until there is room; never end `kept`."""
        others = [key for key in self._task_baselines if key not in kept]
        line = {key: place for place, key in enumerate(self._coming, 1)}
        # First tasks with no known need, then those whose turn is furthest away.
        others.sort(key=lambda key: (key not in self._had, -line.get(key, 0)))
        self._end(others[: max(0, len(self._task_baselines) - self.capacity)])

    def _put_down(self) -> None:
        """Make the current task wait for its next turn.

        If any of its baselines was lost, all restart then: the loss may have been bad luck.
        """
        key, self._key = self._key, None
        if key is None:
            return
        self._had.add(key)
        task_baselines = self._task_baselines.pop(key)
        if task_baselines.park():
            self._task_baselines[key] = task_baselines
        else:
            task_baselines.leave()

    def _made(self, task: Task, dtype: str | None) -> TaskBaselines:
        """Return the baselines of a task, made at the first call."""
        key = _key_of(task, dtype)
        if key not in self._task_baselines:
            sources = self._sources(task)
            of = {n: sources.get("control" if n == "control" else "eager") for n in self._baselines}
            if self._runner.device == "cpu":
                # Interpreted kernels are not timed, nor is the control.
                of = {n: s for n, s in of.items() if s is None or s.language not in NEEDS_A_GPU}
            self._task_baselines[key] = self._make(
                task,
                timed_cases(task, dtype=dtype, seed=self._seed),
                self._processes,
                baselines={name: source for name, source in of.items() if source is not None},
                seed=self._seed,
                background=self.background,
            )
        return self._task_baselines[key]


def _key_of(task: Task, dtype: str | None) -> BaselineKey:
    return task.key, dtype, repr(task.perf)
