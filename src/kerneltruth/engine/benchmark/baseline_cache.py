"""Which task is timed now, and the baselines of those that wait for another turn."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

import torch

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.schedule.background_work import BackgroundWork
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.engine.benchmark.baseline_processes import BaselineProcesses, in_parallel
from kerneltruth.engine.benchmark.baselines import process_of
from kerneltruth.engine.benchmark.memory import CONTEXT_BYTES, memory_of
from kerneltruth.engine.benchmark.task_baselines import TaskBaselines
from kerneltruth.runner.candidate import NEEDS_A_GPU, Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.spec import Task

# Tasks whose baselines are there at a time, at most; and the device memory for those that wait: a
# part of so many.
MOST_AT_ONCE = 16
WAITING_SHARE = 2
# What a baseline holds that waits, beside its process's context.
WAITING_BYTES = 2**28
# While less than this part of the device's memory is free, nobody else gets ready ahead of time.
FREE_SHARE = 1 / 3
# A task's name, the dtype, and its shapes: a task with others has other baselines.
Key = tuple[str, str | None, str]


class BaselineCache:
    """The turns that tasks take on one device.

    A task's baselines stay after its turn, without the memory of their rows, as long as there is
    room for those of all tasks.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        baselines: tuple[str, ...],
        seed: int,
        sources: Callable[[Task], dict[str, Candidate]],
    ) -> None:
        """No process is started yet; for the arguments see `Benchmarker`."""
        self._runner = runner
        self._baselines = baselines
        self._processes = BaselineProcesses(runner)
        self._seed = seed
        self._sources = sources
        self._on_gpu = runner.device != "cpu"
        # That in hand, and those that wait: who has waited longest stands first.
        self._grounds: dict[Key, TaskBaselines] = {}
        self._key: Key | None = None
        # Those that had a turn since they got ready: they are not known to be needed again.
        self._had: set[Key] = set()
        # Those that get ready, or did, and have had no turn since; who comes next stands first.
        self._coming: dict[Key, Future[None]] = {}
        self._threads = ThreadPoolExecutor(max(2, len(os.sched_getaffinity(0))))
        self.background = BackgroundWork(finish=self._finish)

    @property
    def capacity(self) -> int:
        """Of how many tasks there may be baselines at a time, so that others have room."""
        if not self._on_gpu:
            return MOST_AT_ONCE
        room = memory_of(self._runner.device) // WAITING_SHARE
        processes = {process_of(name) for name in self._baselines}
        held = CONTEXT_BYTES * len(processes) + WAITING_BYTES * len(self._baselines)
        held = max(held, CONTEXT_BYTES)
        return max(1, min(MOST_AT_ONCE, room // held))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Of which tasks there are baselines; who has waited longest stands first."""
        return tuple(name for name, *_ in self._grounds)

    def begin(self, task: Task, dtype: str | None = None) -> TaskBaselines:
        """Have this task in hand, once it is ready; that one before it waits."""
        task_baselines, key = self._made(task, dtype), _key_of(task, dtype)
        if key != self._key:
            self._put_down()
            self._grounds[key] = self._grounds.pop(key)
            self._key = key
            self._end_beyond_room((key,))
            self._await(key)
            if (following := next(iter(self._coming), None)) is not None:
                self._compute_references(following)
        self._await(key)
        return task_baselines

    def ready(self, tasks: Iterable[Task], effort: Effort) -> None:
        """Have the baselines of tasks that come next compile, side by side, and wait for them.

        As many as the device has memory for; others do so in their turn. Those of the task in hand
        begin anew if any of them was lost.
        """
        tasks = tuple(tasks)
        keys = [_key_of(task, None) for task in tasks]
        if self._key not in keys or not self._grounds[self._key].whole:
            self._put_down()
        self._begin_to_prepare(tasks, effort)
        wait([self._coming[key] for key in keys])

    def prepare_in_background(self, tasks: Iterable[Task], effort: Effort) -> None:
        """Have them compile while others are timed; they are paused during batches."""
        others = [task for task in tasks if _key_of(task, None) != self._key]
        self._begin_to_prepare(others, effort)

    def _begin_to_prepare(self, tasks: Sequence[Task], effort: Effort) -> None:
        keys = [_key_of(task, None) for task in tasks]
        coming = [self._made(task, None) for task in tasks]
        self._end_beyond_room(keys)
        if not self._room():
            # The others are not known to be needed again.
            self._end([k for k in self._waiting() if k in self._had and k not in keys])
        self._had.difference_update(keys)
        for key, task_baselines in zip(keys, coming, strict=True):
            if key not in self._coming or self._coming[key].done():
                self._coming[key] = self._threads.submit(self._prepare_now, task_baselines, effort)

    def _prepare_now(self, task_baselines: TaskBaselines, effort: Effort) -> None:
        task_baselines.warm_up(effort, room=self._room)
        with self.background.work():
            self._release()

    def _compute_references(self, key: Key) -> None:
        """Have all that is due to the task that comes next: it may take much memory."""
        task_baselines, ready = self._grounds[key], self._coming[key]

        def compute_references() -> None:
            ready.result()
            task_baselines.compute_references(room=self._room)

        self._coming[key] = self._threads.submit(compute_references)

    def _await(self, key: Key) -> None:
        """Wait until a task that gets ready is."""
        begun = self._coming.pop(key, None)
        if begun is not None:
            # A failure here is reported when the result is needed.
            with contextlib.suppress(MemoryError, RuntimeError):
                begun.result()

    def _finish(self) -> None:
        """Wait for what this process has asked the device for: it goes on after the asking."""
        if self._on_gpu:
            torch.cuda.synchronize(torch.device(self._runner.device))

    def _waiting(self) -> list[Key]:
        return [key for key in self._grounds if key != self._key]

    def _room(self) -> bool:
        """Whether the device has memory for more that gets ready."""
        if not self._on_gpu:
            return True
        free, total = torch.cuda.mem_get_info(torch.device(self._runner.device))
        return free >= FREE_SHARE * total

    def _release(self) -> None:
        """Give back what this process keeps of the device's memory for its own use."""
        if self._on_gpu:
            torch.cuda.empty_cache()

    def free_memory(self) -> bool:
        """End baselines of tasks that wait; whether there were any.

        Of all that had their turn, and next of half of the others, those that come last.
        """
        self._release()
        waiting = self._waiting()
        had = [key for key in waiting if key in self._had]
        self._end(had or waiting[len(waiting) // 2 :])
        self._processes.end_idle()
        return bool(waiting)

    def close(self, *, wait: bool = False) -> None:
        """End all baselines; without `wait` this is only asked for."""
        self._key = None
        for begun in self._coming.values():
            begun.cancel()
        self._coming.clear()
        ending, self._grounds = self._grounds, {}
        in_parallel(partial(task_baselines.close, wait=wait) for task_baselines in ending.values())
        self._processes.end_idle(wait=wait)

    def _end(self, keys: Sequence[Key]) -> None:
        """End the baselines of these tasks; their processes are there for others."""
        ending = [self._grounds.pop(key) for key in keys]
        for key in keys:
            self._coming.pop(key, None)
        in_parallel(task_baselines.leave for task_baselines in ending)

    def _end_beyond_room(self, kept: Collection[Key]) -> None:
        """End baselines that have waited longest, until there is room for the others; not these."""
        others = [key for key in self._grounds if key not in kept]
        line = {key: place for place, key in enumerate(self._coming, 1)}
        # Those that nobody is known to need again, and then who comes last.
        others.sort(key=lambda key: (key not in self._had, -line.get(key, 0)))
        self._end(others[: max(0, len(self._grounds) - self.capacity)])

    def _put_down(self) -> None:
        """Have the task in hand wait for its next turn.

        If any of its baselines was lost, all begin anew then: it may have been this turn's bad
        luck.
        """
        key, self._key = self._key, None
        if key is None:
            return
        self._had.add(key)
        task_baselines = self._grounds.pop(key)
        if task_baselines.park():
            self._grounds[key] = task_baselines
        else:
            task_baselines.leave()

    def _made(self, task: Task, dtype: str | None) -> TaskBaselines:
        """The grounds of a task; made when they are first asked for."""
        key = _key_of(task, dtype)
        if key not in self._grounds:
            sources = self._sources(task)
            of = {n: sources.get("control" if n == "control" else "eager") for n in self._baselines}
            if not self._on_gpu:
                # Interpreted kernels are not timed: nor is the control.
                of = {n: s for n, s in of.items() if s is None or s.language not in NEEDS_A_GPU}
            self._grounds[key] = TaskBaselines(
                task,
                timed_cases(task, dtype=dtype, seed=self._seed),
                self._processes,
                baselines={name: source for name, source in of.items() if source is not None},
                seed=self._seed,
                background=self.background,
            )
        return self._grounds[key]


def _key_of(task: Task, dtype: str | None) -> Key:
    return task.key, dtype, repr(task.perf)
