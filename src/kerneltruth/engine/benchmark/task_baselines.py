"""The baselines of one task, and what timing each of its cases takes."""

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
from kerneltruth.engine.benchmark.baseline_processes import BaselineProcesses, SharedChild
from kerneltruth.engine.benchmark.baselines import (
    CANDIDATE,
    COMPILED,
    PYTORCH,
    process_of,
)
from kerneltruth.engine.benchmark.memory import is_out_of_memory, start_again
from kerneltruth.engine.benchmark.setup import TimingSetup
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Mode, Session
from kerneltruth.runner.timing.messages import AllocateBuffers
from kerneltruth.tasks.spec import Task

# Processes that run nothing but PyTorch's own functions go from one task to the next.
_HANDED_ON = frozenset({PYTORCH, CANDIDATE})
# Contents whose results the judge knows, for each case.
KNOWN = 2
# For giving memory back.
PARK_S = 30.0
# Of inputs: what is due takes several times as much until it is its task's turn.
DUE_AHEAD_BYTES = 2**25
# References in other processes take all cores, and others the interpreter: one task's at a time.
_ASKED = threading.Lock()
# Pools of a few tasks at a time: many threads that draw wait for the interpreter, and their memory
# on the device adds up.
_DRAWN = threading.Semaphore(2)
# Spare rows of more bytes are given back until the baseline's turn: many tasks wait on one device.
SPARE_BYTES = 2**26


class TaskBaselines:
    """The grounds of one task, and its baselines' processes.

    All cases of a baseline are in one, and what PyTorch itself makes of a function, compiled or
    not, is in one too: a context on the device takes a fifth of a second, one after the other.
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
    ) -> None:
        """No process is started yet.

        Args:
            task: the task.
            cases: on which it is timed.
            processes: those of the baselines.
            baselines: by name, see `BASELINES`.
            seed: of the contents whose results the judge knows.
            background: work that pauses while batches run.
        """
        self.task = task
        self.cases = cases
        self._processes = processes
        self._baselines = baselines
        self._seed = seed
        self._quiet = background
        self._closed = False
        self._opening = threading.Lock()
        self._made: dict[str, TimingSetup] = {}
        self._shared: dict[str, SharedChild] = {}
        # Seconds that it took to get ready, of which others took part at the same time.
        self.spent = Stopwatch()

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """The task's shapes that are not timed."""
        return left_out(self.task, dtype=self.cases[0].dtype)

    def of(self, case: Case) -> TimingSetup:
        """The ground of a case; made when it is first asked for."""
        found = self._made.get(case.identity)
        if found is None:
            # First: their processes get ready while the inputs are drawn.
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
        """Have the baselines compile for all cases; they are paused during batches.

        And have what is due, where it takes little memory or answers come from other processes.

        Args:
            effort: of the benchmarks to come.
            room: whether the device has memory for more; else what is missing waits for its turn.
        """
        with self._quiet.beside(self._sessions):
            for case in self.cases:
                if self._closed or not room() or not self._warm_up(case, effort):
                    return

    def compute_references(self, *, room: Callable[[], bool] = lambda: True) -> None:
        """Have what is still due, for the task that comes next."""
        for setup in list(self._made.values()):
            if not self._closed and not setup.expected and room():
                # Those that a device answers do not take all cores.
                there = self.task.with_spread is not None and self._processes.device != "cpu"
                with self.spent.on("references"), contextlib.nullcontext() if there else _ASKED:
                    setup.compute_references()

    def _sessions(self) -> list[Session]:
        return [shared.session for shared in list(self._shared.values())]

    def _warm_up(self, case: Case, effort: Effort) -> bool:
        """Have the baselines compile for a case; whether others may follow."""
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
                    # It has another try when it is needed, and room is made for it.
                    for side in (s for s in setup.sides if s.name == error.name):
                        start_again(side, error.seen)
                    return False
                setup.leave_out(error)
        if SPARE * setup.inputs.buffer_bytes > SPARE_BYTES:
            self._release(setup)
        if self.task.foreign or setup.inputs.buffer_bytes <= DUE_AHEAD_BYTES:
            with self.spent.on("references"), _ASKED:
                setup.compute_references()
        return True

    @property
    def whole(self) -> bool:
        """Whether no baseline was lost; one that is none would be none again."""
        return all(setup.failed.keys() == setup.not_valid for setup in self._made.values())

    def fresh(self, name: str) -> Side | None:
        """A baseline once more, in a process of its own; None where it would have to compile."""
        if COMPILED.get(name):
            return None
        with self._quiet.work():
            session = self._processes.open(self._baselines[name], "time", shared=False)
        return Side(name=name, child=session)

    def park(self) -> bool:
        """Give back the memory of rows and of what is due, until the next turn.

        Gives whether all baselines are there for it.
        """
        for setup in self._made.values():
            setup.expected.clear()
            self._release(setup)
        return self.whole

    def _release(self, setup: TimingSetup) -> None:
        """Give back the memory of rows."""
        for side in [side for side in setup.sides if side.readiness is not Readiness.NEW]:
            try:
                side.do(AllocateBuffers(count=0, slot=side.slot), PARK_S)
                side.advance(ChildEvent.FREED)
            except SideError as error:
                setup.leave_out(error)

    def leave(self) -> None:
        """Leave the baselines' processes to other tasks, and end those that nobody else may have.

        So all, if a baseline failed. Another thread may be getting them ready: that ends here.
        """
        whole = self.whole
        for place, shared in self._ending().items():
            if whole and place in _HANDED_ON:
                shared.hand_on(self._processes)
            else:
                shared.close()

    def close(self, *, wait: bool = False) -> None:
        """End the baselines' processes; without `wait` this is only asked for."""
        for shared in self._ending().values():
            shared.close(wait=wait)

    def _ending(self) -> dict[str, SharedChild]:
        """The processes there are; no other is begun from here on."""
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
                # A context that is made meanwhile would disturb batches.
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
