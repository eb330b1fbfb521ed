"""Time candidates against baselines that stay warm between them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from msgspec import UNSET, UnsetType, structs

from kerneltruth.cases.philox import derive, stream
from kerneltruth.clock.comparison import candidate_times, comparisons
from kerneltruth.clock.device.lock import device_for_timing
from kerneltruth.clock.integrity.suspicion import by_events
from kerneltruth.clock.outcome import nearly_tied
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.sides import ChildEvent, Readiness, Side, SideError
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.clock.schedule.confirmation import resolve_suspicion
from kerneltruth.clock.schedule.energy import measure_energy
from kerneltruth.clock.schedule.stopwatch import Stopwatch
from kerneltruth.clock.statistics.summary import enough
from kerneltruth.documents.case import Case
from kerneltruth.documents.timing import CandidateTimes, ShapeEnergy
from kerneltruth.engine.benchmark.baseline_cache import BaselineCache
from kerneltruth.engine.benchmark.baselines import CANDIDATE, check_baselines
from kerneltruth.engine.benchmark.candidate_document import Measured, concluded, times_of
from kerneltruth.engine.benchmark.finished import FinishedBenchmark, finished
from kerneltruth.engine.benchmark.machine import DeviceWatch, Machine
from kerneltruth.engine.benchmark.measured_shape import MeasuredShape, measured_shape, retimed
from kerneltruth.engine.benchmark.memory import is_out_of_memory, limit_memory, retry_with_memory
from kerneltruth.engine.benchmark.setup import TimingSetup
from kerneltruth.engine.benchmark.task_baselines import TaskBaselines
from kerneltruth.engine.requests import result_of
from kerneltruth.errors import lacks_memory
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.languages import TRITON_COMPILES
from kerneltruth.runner.session import Session
from kerneltruth.tasks.spec import Task

# How many times further from 1 a ratio is confirmed on a CPU, where processes differ the more.
FURTHER_ON_CPU = 10
DEFAULT_BASELINES = ("eager", "compile", "control")


class Benchmarker:
    """Times candidates on one device, one after the other.

    Baselines stay warm for further candidates of their task, even after other tasks, while there is
    room for all. They are still measured again beside every candidate.

    Attributes:
        new_benchmark: makes a benchmark.
    """

    new_benchmark: Callable[..., InterleavedBenchmark] = InterleavedBenchmark

    def __init__(
        self,
        runner: Runner,
        *,
        machine: Machine,
        seed: int,
        baselines: tuple[str, ...] = DEFAULT_BASELINES,
        effort: Effort | None = None,
        cold: bool = False,
        itself: bool = False,
        sources: Callable[[Task], dict[str, Candidate]],
    ) -> None:
        """A benchmarker.

        The seed, of contents and of the order of calls, is secret from candidates. `cold` has
        Triton candidates compile from scratch, so that compiling can be timed. With `itself` the
        candidates are eager PyTorch, prepared with the baselines. `sources` gives a task's `eager`
        and `control` candidates, where they exist.
        """
        check_baselines(baselines)
        self._runner = runner
        self._machine = machine
        self._seed = seed
        self._effort = effort or Effort()
        self._cold = cold
        self._on_gpu = runner.device != "cpu"
        self._itself = itself
        names = (*baselines, CANDIDATE) if itself else baselines
        self.baseline_cache = BaselineCache(runner, baselines=names, seed=seed, sources=sources)
        # Its context is created beside other preparation, but never during batches.
        self.baseline_cache.background.always(lambda: () if self._next is None else (self._next,))
        self._count = 0
        self._next: Session | None = None
        # The previous candidate takes a while to end; the next one is prepared in that time.
        self._ends = ThreadPoolExecutor(1)
        self._ending: Future[None] | None = None
        self._alone_s = self._ready_s = 0.0
        self._spent = Stopwatch()

    def close(self, *, wait: bool = False) -> None:
        """End all children; without `wait`, only request it."""
        if self._next is not None:
            self._next.close(wait=wait)
            self._next = None
        self._ends.shutdown(wait=wait)
        self.baseline_cache.close(wait=wait)

    @property
    def capacity(self) -> int:
        """Return how many tasks may have live baselines, so that all have room."""
        return self.baseline_cache.capacity

    def ready(self, tasks: Iterable[Task]) -> None:
        """Prepare the baselines of the next tasks, side by side; nothing is timed.

        The device is free for other work during this.
        """
        began = time.perf_counter()
        self.baseline_cache.ready(tasks, self._effort)
        self._ready_s += time.perf_counter() - began

    def prepare_in_background(self, tasks: Iterable[Task]) -> None:
        """Prepare them while others are timed, without disturbing batches."""
        self.baseline_cache.prepare_in_background(tasks, self._effort)

    def time(
        self,
        task: Task,
        candidate: Candidate,
        *,
        dtype: str | None = None,
        then: Candidate | None = None,
    ) -> CandidateTimes:
        """Time a candidate on the task's shapes.

        Without a dtype it takes the task's first. The process of `then`, the next candidate, starts
        early, and loads nothing yet.
        """
        return result_of(self.shapes(task, candidate, dtype=dtype, then=then))

    def shapes(
        self,
        task: Task,
        candidate: Candidate,
        *,
        dtype: str | None = None,
        then: Candidate | None = None,
    ) -> Generator[tuple[int, int, Case], None, CandidateTimes]:
        """Time as `time` does, with the same arguments; yield before each shape is timed.

        Yields the shape's number, from 0, and the number of all shapes.
        """
        task_baselines = self._begin(task, dtype)
        began = time.perf_counter()
        if task.pretrained:
            candidate = replace(candidate, pretrained=True)
        child = None if self._itself else self._child(candidate, then)
        try:
            measured = yield from self._measure(task_baselines, candidate, child)
        finally:
            if child is not None:
                self._ending = self._ends.submit(child.close)
        with self._spent.on("grading"):
            shapes = [self._graded(found) for found in measured.benchmarks]
        document = times_of(measured, shapes, task_baselines, ready_s=self._ready_s)
        self._ready_s = 0.0
        task_baselines.spent.clear()
        if measured.times.outcome != "timed":
            return concluded(document, shapes)
        with self._spent.on("again"):
            shapes = self._retime_beaten(shapes, [found.benchmark for found in measured.benchmarks])
        return structs.replace(
            concluded(document, shapes),
            device_s=self._alone_s + self._spent["again"],
            spent=dict(self._spent),
            seconds=time.perf_counter() - began,
        )

    def _begin(self, task: Task, dtype: str | None) -> TaskBaselines:
        """Return a task's baselines, and measure from now on what one candidate takes."""
        began = time.perf_counter()
        task_baselines = self.baseline_cache.begin(task, dtype)
        self._ready_s += time.perf_counter() - began
        self._count += 1
        self._alone_s = 0.0
        self._spent = Stopwatch()
        return task_baselines

    def _graded(self, found: FinishedBenchmark) -> MeasuredShape:
        """Grade a benchmark; if grading lacks memory, free what others hold and try again."""
        shape = measured_shape(found, machine=self._machine)
        not_graded = shape.times.graded.not_graded or ""
        if lacks_memory(not_graded) and self.baseline_cache.free_memory():
            return measured_shape(found, machine=self._machine)
        return shape

    def _measure(
        self, task_baselines: TaskBaselines, candidate: Candidate, child: Session | None
    ) -> Generator[tuple[int, int, Case], None, Measured]:
        measured = Measured()
        for number, case in enumerate(task_baselines.cases):
            yield number, len(task_baselines.cases), case
            try:
                with self._spent.on("inputs"):
                    setup = task_baselines.of(case)
                side = setup.itself() if child is None else _candidate_side(child)
                found = self._benchmark(setup, side, candidate)
                measured.benchmarks.append(self._confirmed(found, task_baselines, candidate))
            except SideError as error:
                measured.stop(error, case.summary())
                return measured
            if measured.times.compile_s is UNSET:
                import_s = None if child is None else child.loaded.seconds
                measured.count_first_calls(side, import_s, on_gpu=self._on_gpu)
        return measured

    def _child(self, candidate: Candidate, then: Candidate | None) -> Session:
        """Return the candidate's child, perhaps prepared ahead, and prepare one for the next."""
        child, self._next = self._next, None
        if child is not None and child.candidate != candidate:
            child.close(wait=False)
            child = None
        child = child or self._open(candidate)
        child.load()
        if then is not None:
            self._next = self._open(then, ahead=True)
        return child

    def _gone(self) -> None:
        if self._ending is not None:
            self._ending.result()
            self._ending = None

    def _open(self, candidate: Candidate, *, ahead: bool = False) -> Session:
        cold = self._cold and candidate.language in TRITON_COMPILES
        return self._runner.open(candidate, mode="time", ahead=ahead, cold=cold)

    def _retime_beaten(
        self, shapes: list[MeasuredShape], benchmarks: list[InterleavedBenchmark]
    ) -> list[MeasuredShape]:
        with device_for_timing(self._runner.device), self.baseline_cache.background.batches():
            looks = zip(shapes, benchmarks, strict=True)
            return [retimed(*look, self._machine, wait_for_end=self._gone) for look in looks]

    def _benchmark(self, setup: TimingSetup, side: Side, candidate: Candidate) -> FinishedBenchmark:
        with self._spent.on("references"):
            known = setup.known()
            if setup.lacked_memory and self.baseline_cache.free_memory():
                setup.expected.clear()
                known = setup.known()
        purpose = (candidate.sha256, setup.case.identity, str(self._count))
        alone = False
        while True:
            benchmark = self.new_benchmark(
                sides=[side, *setup.baselines],
                inputs=setup.inputs,
                effort=self._effort_of(len(setup.sides) + 2),
                rng=stream(derive(self._seed, *purpose), "contest"),
                known=known,
                too_long=partial(self._machine.too_long, setup.task, setup.case),
                elements=setup.elements(),
                on_gpu=self._on_gpu,
            )
            try:
                watch = self._run(benchmark, setup)
            except SideError as error:
                if is_out_of_memory(error.seen):
                    self._gone()
                    # Other tasks may have held the memory; try once more when all of theirs is
                    # released.
                    freed = self.baseline_cache.free_memory()
                    if freed or not alone:
                        alone = not freed
                        for each in (s for s in benchmark.sides if s.name == error.name):
                            retry_with_memory(each, error.seen)
                        continue
                if error.name == CANDIDATE:
                    raise
                setup.leave_out(error)
                if side.readiness is Readiness.READY:
                    side.advance(ChildEvent.FREED)
                continue
            energy = self._energy_of(benchmark)
            with self._spent.on("facts"):
                return replace(finished(setup, benchmark, watch), energy=energy)

    def _energy_of(self, benchmark: InterleavedBenchmark) -> ShapeEnergy | UnsetType:
        """Return the energy of a benchmark's calls, if it was asked for."""
        if not self._effort.energy:
            return UNSET
        with (
            self._spent.on("energy"),
            device_for_timing(self._runner.device),
            self.baseline_cache.background.batches(),
        ):
            return measure_energy(benchmark, self._machine.telemetry)

    def _run(self, benchmark: InterleavedBenchmark, setup: TimingSetup) -> DeviceWatch:
        """Prepare the sides and run the blocks, while nothing else is timed."""
        with self._alone() as watch:
            began = time.perf_counter()
            fresh = not all(s.buffers for s in setup.baselines)
            with self._spent.on("compiling"):
                benchmark.warm_up()
            with self._spent.on("leaving"):
                self._gone()
            with contextlib.ExitStack() as background:
                with self._spent.on("pausing_others"):
                    background.enter_context(self.baseline_cache.background.batches())
                with self._spent.on("preparing"):
                    benchmark.prepare(watch.disturbance)
                began = time.perf_counter() if fresh else began
                with self._spent.on("laps"):
                    benchmark.run(self._enough, watch.disturbance)
                    resolve_suspicion(benchmark, watch.disturbance)
                    benchmark.measure_warm()
            self._alone_s += time.perf_counter() - began
        for what, seconds in benchmark.spent.items():
            self._spent[what] += seconds
        return watch

    def _effort_of(self, children: int) -> Effort:
        """Return the effort when that many children share the device."""
        return limit_memory(self._effort, self.baseline_cache.memory.total, children)

    def _confirmed(
        self, found: FinishedBenchmark, task_baselines: TaskBaselines, candidate: Candidate
    ) -> FinishedBenchmark:
        """Return the result, confirmed in other processes where a baseline is nearly as quick."""
        own = candidate_times(found.benchmark).estimate
        seen = comparisons(found.benchmark, noise_floor=self._machine.noise_floor(own))
        near_tie = self._effort.near_tie * (1 if self._on_gpu else FURTHER_ON_CPU)
        nearly = nearly_tied(seen, near_tie)
        if not nearly:
            return found
        with self._spent.on("confirming"), contextlib.ExitStack() as ending:
            try:
                benchmark = self._benchmark_again(found, task_baselines, candidate, nearly, ending)
            except SideError:
                # The second look failed and says nothing; the first stands.
                return found
        return replace(found, confirmation=benchmark)

    def _benchmark_again(
        self,
        found: FinishedBenchmark,
        task_baselines: TaskBaselines,
        candidate: Candidate,
        nearly: Collection[str],
        ending: contextlib.ExitStack,
    ) -> InterleavedBenchmark:
        """Benchmark once more, in processes that `ending` ends, without grading.

        Baselines that would have to compile stay in their processes.
        """
        sides = [_candidate_side(self._runner.open(candidate, mode="time"))]
        for side in found.benchmark.sides[1:]:
            if side.name in nearly:
                sides.append(task_baselines.fresh(side.name) or side)
        for side in sides:
            if side not in found.benchmark.sides:
                ending.callback(side.child.close)
        benchmark = self.new_benchmark(
            sides=sides,
            inputs=found.setup.inputs,
            effort=self._effort_of(len(found.benchmark.sides) + 4),
            rng=stream(
                derive(self._seed, candidate.sha256, found.setup.case.identity, str(self._count)),
                "confirming",
            ),
            on_gpu=self._on_gpu,
        )
        with self._alone() as watch:
            began = time.perf_counter()
            benchmark.warm_up()
            with self.baseline_cache.background.batches():
                benchmark.prepare(watch.disturbance)
                benchmark.run(self._enough, watch.disturbance)
            self._alone_s += time.perf_counter() - began
        return benchmark

    @contextlib.contextmanager
    def _alone(self) -> Iterator[DeviceWatch]:
        with device_for_timing(self._runner.device):
            yield self._machine.watch()

    def _enough(self, benchmark: InterleavedBenchmark) -> bool:
        least, precision = self._effort.blocks[0], self._effort.precision
        return len(benchmark.sides) > 1 and all(
            enough(by_events(benchmark, side.name), precision=precision, least=least)
            for side in benchmark.sides[1:]
        )


def _candidate_side(child: Session) -> Side:
    return Side(name=CANDIDATE, child=child)
