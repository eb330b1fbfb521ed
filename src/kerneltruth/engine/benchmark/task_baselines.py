"""Manage the baselines of one task, and what timing each of its cases needs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from functools import cached_property

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.buffers import SPARE
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.protocol.sides import ChildEvent, Readiness, Side, SideError
from kerneltruth.clock.schedule.background_work import BackgroundWork
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.clock.schedule.stopwatch import Stopwatch
from kerneltruth.clock.schedule.timed_cases import left_out
from kerneltruth.documents.case import Case
from kerneltruth.engine.benchmark.baselines import (
    CANDIDATE,
    COMPILED,
    PYTORCH,
    BaselineProcesses,
    SharedChild,
    process_of,
)
from kerneltruth.engine.benchmark.memory import is_out_of_memory, retry_with_memory
from kerneltruth.engine.benchmark.setup import TimingSetup
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.session import Mode, Session
from kerneltruth.runner.timing.messages import AllocateBuffers
from kerneltruth.tasks.spec import Task

# Processes that run only PyTorch's own functions serve one task after another.
_HANDED_ON = frozenset({PYTORCH, CANDIDATE})
# How many contents with known results each case has.
KNOWN = 2
# Seconds that giving memory back may take.
PARK_S = 30.0
# Inputs up to this size are graded ahead: expected results take several times as much until the
# task's turn.
DUE_AHEAD_BYTES = 2**25
# References in other processes use all cores, others hold the interpreter lock: one task at a time.
_LOCK = threading.Lock()
# A few tasks draw pools at a time: many drawing threads contend for the interpreter lock, and their
# device memory adds up.
_DRAWN = threading.Semaphore(2)
# Larger spare buffers are released until the baseline's turn: many tasks share one device.
SPARE_BYTES = 2**26


class TaskBaselines:
    """The timing setups of one task, and the processes of its baselines.

    All cases of a baseline share a process, and so do eager and compiled PyTorch: creating a
    context on the device takes 0.2 s, and contexts are created one after the other.
    """

    def __init__(
        self,
        task: Task,
        cases: tuple[Case, ...],
        processes: BaselineProcesses,
        *,
        baselines: Mapping[str, Candidate],
        seed: int,
        background: BackgroundWork,
        due_ahead_bytes: int = DUE_AHEAD_BYTES,
    ) -> None:
        """Start no process yet.

        Work in the background pauses while batches run. Inputs up to `due_ahead_bytes` have
        expected results computed ahead.
        """
        self.task = task
        self.cases = cases
        self._processes = processes
        self._baselines = baselines
        self._seed = seed
        self._quiet = background
        self._due_ahead_bytes = due_ahead_bytes
        self._closed = False
        self._opening = threading.Lock()
        self._made: dict[str, TimingSetup] = {}
        self._shared: dict[str, SharedChild] = {}
        # Seconds of preparation, during which other tasks may have been prepared too.
        self.spent = Stopwatch()

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """Return the task's shapes that are not timed."""
        return left_out(self.task, dtype=self.cases[0].dtype)

    def of(self, case: Case) -> TimingSetup:
        """Return the timing setup of a case, made at the first call."""
        found = self._made.get(case.identity)
        if found is None:
            # First, so that their processes start while the inputs are drawn.
            sides = [self._side(name, source) for name, source in self._baselines.items()]
            with _DRAWN:
                leave = self._quiet.work()
                inputs = make_bench_inputs(
                    self.task, case, device=self._processes.device, leave=leave
                )
            found = self._made[case.identity] = TimingSetup(
                task=self.task,
                case=case,
                inputs=inputs,
                device=self._processes.device,
                drawn=list(inputs.draw(stream(self._seed, "known", case.identity), KNOWN)),
                sides=sides,
                background=self._quiet,
            )
        return found

    def warm_up(self, effort: Effort, *, room: Callable[[], bool] = lambda: True) -> None:
        """Have the baselines compile for all cases, paused during batches.

        Also computes expected results where that takes little memory or happens in other processes.

        What the device has no room for waits for the task's turn.
        """
        with self._quiet.beside(self._sessions):
            for case in self.cases:
                if self._closed or not room() or not self._warm_up(case, effort):
                    return

    def compute_references(self, *, room: Callable[[], bool] = lambda: True) -> None:
        """Compute the remaining expected results, for the task that comes next."""
        for setup in list(self._made.values()):
            if not self._closed and not setup.expected and room():
                # Results that the device computes do not use all cores.
                there = self.task.with_spread is not None and self._processes.device != "cpu"
                with self.spent.on("references"), contextlib.nullcontext() if there else _LOCK:
                    setup.compute_references()

    def _sessions(self) -> list[Session]:
        return [shared.session for shared in list(self._shared.values())]

    def _warm_up(self, case: Case, effort: Effort) -> bool:
        """Have the baselines compile for a case; return whether further cases may follow."""
        with self.spent.on("inputs"):
            setup = self.of(case)
        while True:
            benchmark = InterleavedBenchmark(
                sides=setup.sides,
                inputs=setup.inputs,
                effort=effort,
                rng=stream(self._seed, "warm-up", case.identity),
                on_gpu=self._processes.device != "cpu",
            )
            try:
                with self.spent.on("compiling"):
                    benchmark.warm_up()
                break
            except SideError as error:
                if is_out_of_memory(error.seen):
                    # It is tried again when it is needed, after room is made for it.
                    for side in (s for s in setup.sides if s.name == error.name):
                        retry_with_memory(side, error.seen)
                    return False
                setup.leave_out(error)
        if SPARE * setup.inputs.buffer_bytes > SPARE_BYTES:
            self._release(setup)
        if self.task.foreign or setup.inputs.buffer_bytes <= self._due_ahead_bytes:
            with self.spent.on("references"), _LOCK:
                setup.compute_references()
        return True

    @property
    def whole(self) -> bool:
        """Return whether no baseline was lost; an invalid one would be invalid again."""
        return all(setup.failed.keys() == setup.not_valid for setup in self._made.values())

    def fresh(self, name: str) -> Side | None:
        """Start a baseline again in a process of its own; None if it would have to compile."""
        if COMPILED.get(name):
            return None
        with self._quiet.work():
            session = self._processes.open(self._baselines[name], "time", shared=False)
        return Side(name=name, child=session)

    def park(self) -> bool:
        """Release buffers and expected results until the next turn.

        Returns whether all baselines are there for it.
        """
        for setup in self._made.values():
            setup.expected.clear()
            self._release(setup)
        return self.whole

    def _release(self, setup: TimingSetup) -> None:
        for side in [side for side in setup.sides if side.readiness is not Readiness.NEW]:
            try:
                side.do(AllocateBuffers(count=0, slot=side.slot), PARK_S)
                side.advance(ChildEvent.FREED)
            except SideError as error:
                setup.leave_out(error)

    def leave(self) -> None:
        """Return the baselines' processes to other tasks, and end those that cannot be shared.

        Ends all if a baseline failed, including those that another thread is preparing.
        """
        whole = self.whole
        for place, shared in self._ending().items():
            if whole and place in _HANDED_ON:
                shared.hand_on(self._processes)
            else:
                shared.close()

    def close(self, *, wait: bool = False) -> None:
        """End the baselines' processes; without `wait`, only request it."""
        for shared in self._ending().values():
            shared.close(wait=wait)

    def _ending(self) -> dict[str, SharedChild]:
        """Return the existing processes; no other starts from here on."""
        with self._opening:
            self._closed = True
            ending, self._shared = self._shared, {}
        self._made.clear()
        return ending

    def _side(self, name: str, source: Candidate) -> Side:
        place = process_of(name)
        with self._opening:
            if self._closed:
                raise RuntimeError(f"{self.task.key}: its baselines were ended meanwhile")
            if place not in self._shared:
                compiles = place == PYTORCH and any(COMPILED.get(n) for n in self._baselines)
                mode: Mode = "time_compiled" if compiles else "time"
                # A context created now would disturb batches.
                with self._quiet.work():
                    session = self._processes.open(source, mode, shared=place in _HANDED_ON)
                self._shared[place] = SharedChild(session)
            shared = self._shared[place]
        side = Side(
            name=name,
            child=shared,
            slot=len(shared.sides),
            compiled=COMPILED.get(name),
            examined=name in COMPILED or name == CANDIDATE,
        )
        shared.sides.append(side)
        return side
