"""What contests share.

Those on one case share inputs, and contents whose results the judge knows; those of one task share
the processes of its baselines.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from kerneltruth.cases.case import Case
from kerneltruth.cases.philox import stream
from kerneltruth.cases.pools import Choice
from kerneltruth.clock.integrity.valid_baselines import NotValid
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import Inputs, stocked
from kerneltruth.clock.protocol.rows import SPARE
from kerneltruth.clock.protocol.sides import Contestant, ContestError, Shown
from kerneltruth.clock.roofline.traffic import output_shapes
from kerneltruth.clock.schedule.benchmark import Contest
from kerneltruth.clock.schedule.quiet import Quiet
from kerneltruth.clock.schedule.stopwatch import Spent
from kerneltruth.clock.schedule.timed_cases import left_out
from kerneltruth.commands.baseline_processes import BaselineProcesses
from kerneltruth.errors import UserError, lacks_memory
from kerneltruth.oracle.expectation import expect_timed
from kerneltruth.oracle.expected import Expectation
from kerneltruth.oracle.grading import grade, grade_spots, spotwise
from kerneltruth.oracle.verdict import Infra, Passed, Verdict, word
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Mode, Session
from kerneltruth.runner.protocol import Errand, Observation, Rows
from kerneltruth.tasks.spec import Task

# What `torch.compile` is told for each baseline that it makes of eager PyTorch.
COMPILED = {
    "eager": None,
    "compile": "default",
    # Without graphs of its own: calls of everyone are captured, or of nobody.
    "compile_max_autotune": "max-autotune-no-cudagraphs",
}
BASELINES = (*COMPILED, "control")
# The timed side; among a task's baselines it is eager PyTorch, timed against itself.
CANDIDATE = "candidate"
# The process of those that are made of eager PyTorch.
PYTORCH = "pytorch"

# Processes that run nothing but PyTorch's own functions go from one task to the next.
_HANDED_ON = frozenset({PYTORCH, CANDIDATE})

# Said where nothing can be graded.
PYTORCH_TOO = "PyTorch's own result is wrong by the same measure"

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


def process_of(name: str) -> str:
    """Which of a task's processes a baseline is in."""
    return PYTORCH if name in COMPILED else name


def is_out_of_memory(seen: Observation) -> bool:
    """Whether the device had no memory for what was asked: others may hold it."""
    return seen.ended != "returned" and lacks_memory(f"{seen.error} {seen.message}")


def begin_anew(side: Contestant, seen: Observation) -> None:
    """Have a side that was short of memory get ready once more, in a process that is there."""
    if seen.dirty or seen.ended == "lost":
        side.child.restart()
        side.stocked = False
    side.rows, side.warmed, side.captured = 0, False, None


def check_baselines(names: Iterable[str]) -> None:
    """Refuse what is no baseline.

    Raises:
        UserError: a name is not one of `BASELINES`.
    """
    for name in names:
        if name not in BASELINES:
            raise UserError(f"--against {name!r}: must be one of {', '.join(BASELINES)}")


@dataclass(slots=True, kw_only=True)
class Ground:
    """The ground of contests on one case.

    Attributes:
        device: where references are computed.
        drawn: contents whose results the judge finds out.
        sides: the baselines.
        failed: why baselines take no part any more, by name; `not_valid` those that are none.
        expected: what calls on drawn contents must give, or why that cannot be had.
        quiet: of the device.
    """

    task: Task
    case: Case
    inputs: Inputs
    device: str
    drawn: list[dict[str, Choice]]
    sides: list[Contestant] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    not_valid: set[str] = field(default_factory=set)
    expected: list[Expectation | str] = field(default_factory=list)
    quiet: Quiet = field(default_factory=Quiet)

    def known(self) -> list[dict[str, Choice]]:
        """Contents whose results the judge knows; it finds out when it is first asked."""
        if not self.expected:
            self.expected = [self._expectation(choices) for choices in self.drawn]
        return [
            choices
            for choices, due_there in zip(self.drawn, self.expected, strict=True)
            if isinstance(due_there, Expectation)
        ]

    @property
    def lacked_memory(self) -> bool:
        """Whether what is due could not be had since others held the device's memory."""
        return any(isinstance(why, str) and lacks_memory(why) for why in self.expected)

    def ask_ahead(self) -> None:
        """Find out what is due; what cannot be had while others are busy is asked for again."""
        self.known()
        if any(isinstance(due_there, str) for due_there in self.expected):
            self.expected.clear()

    @property
    def opponents(self) -> list[Contestant]:
        """The baselines that a candidate meets."""
        return [side for side in self.sides if side.name != CANDIDATE]

    def itself(self) -> Contestant:
        """Eager PyTorch as the candidate.

        Raises:
            ContestError: it could not get ready.
        """
        for side in self.sides:
            if side.name == CANDIDATE:
                return side
        seen = Observation(ended="lost", message=self.failed.get(CANDIDATE, "there is none"))
        raise ContestError(CANDIDATE, seen)

    def elements(self) -> tuple[int, ...]:
        """How many elements each output has, where each is right or wrong by itself; else none."""
        expected = [e for e in self.expected if isinstance(e, Expectation)]
        if not expected or not all(spotwise(self.task, e) for e in expected):
            return ()
        shapes = {tuple(want.shape for want in e.outputs) for e in expected}
        # What is selected by values has another shape in each call.
        fixed = self.task.foreign or output_shapes(self.task, self.case) is not None
        return tuple(map(math.prod, shapes.pop())) if fixed and len(shapes) == 1 else ()

    def _expectation(self, choices: dict[str, Choice]) -> Expectation | str:
        with self.quiet.work():
            inputs = self.inputs.at(self.task, self.case, choices)
            try:
                return expect_timed(self.task, self.case, inputs, device=self.device)
            except Exception as error:
                return f"{type(error).__name__}: {error}".splitlines()[0]

    def leave_out(self, error: ContestError) -> None:
        """Go on without a baseline that cannot; it says nothing of any candidate."""
        self.failed[error.name] = str(error)
        if isinstance(error, NotValid):
            self.not_valid.add(error.name)
        self.sides = [side for side in self.sides if side.name != error.name]

    def graded(self, contest: Contest) -> dict[str, Any]:
        """The shown results of a contest against what was due."""
        wrong: list[str] = []
        unknown: list[str] = []
        for where, verdict in self._verdicts(contest):
            if isinstance(verdict, Infra):
                unknown.append(verdict.reason)
            else:
                wrong += _wrong(verdict, where)
        if not contest.shown:
            unknown += [e for e in self.expected if isinstance(e, str)]
        calls = len(contest.shown) + sum(len(s.at) for s in contest.sampled)
        if wrong and self._pytorch_is_wrong(contest):
            calls, wrong, unknown = 0, [], [f"{PYTORCH_TOO}: {wrong[0]}"]
        return {"calls": calls, "wrong": wrong, "not_graded": unknown[0] if unknown else None}

    def _pytorch_is_wrong(self, contest: Contest) -> bool:
        """Whether eager PyTorch's own results are wrong, too, by the same measure."""
        there = [side for side in contest.sides[1:] if side.name in COMPILED and side.rows]
        try:
            shown = [each for side in there[:1] for each in contest.show_known(side)]
        except ContestError:
            return False
        return any(_wrong(self._verdict_of(each)) for each in shown)

    def _verdict_of(self, shown: Shown) -> Verdict:
        return self._judged(partial(grade, self.task, self._due(shown.at), shown.seen))

    def _verdicts(self, contest: Contest) -> Iterator[tuple[str, Verdict]]:
        """The verdict of each result, with words on where it is from."""
        for shown in contest.shown:
            yield "", self._verdict_of(shown)
        for sampled in contest.sampled:
            due_there = [self._due(at) for at in sampled.at]
            graded = partial(grade_spots, self.task, due_there, sampled.spots, sampled.seen)
            yield f"samples of {len(due_there)} calls: ", self._judged(graded)

    def _judged(self, graded: Callable[..., Verdict]) -> Verdict:
        try:
            return graded(device=self.device)
        except Exception as error:
            # Memory, or a mistake in a task: the candidate's fault is a verdict.
            return Infra(reason=f"{type(error).__name__}: {error}".splitlines()[0])

    def _due(self, at: Mapping[str, Choice]) -> Expectation:
        expectation = self.expected[self.drawn.index(dict(at))]
        assert isinstance(expectation, Expectation)
        return expectation


def _wrong(verdict: Verdict, where: str = "") -> list[str]:
    if isinstance(verdict, Passed):
        return []
    said = getattr(verdict, "detail", "") or getattr(verdict, "error", "")
    return [f"{word(verdict)}: {where}{said}"[:300]]


class _Shared:
    """A child that several contests share, and several baselines, each with slots of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session
        # Whether the child is somebody else's now, or gone.
        self.left = False
        self.sides: list[Contestant] = []
        self._asked = threading.Lock()

    def errand(
        self, message: Errand, *, sizes: dict[str, int] | None = None, deadline_s: float = 30.0
    ) -> Observation:
        with self._asked:
            if self.left:
                return Observation(ended="lost", message="the baseline has left its process")
            return self.session.errand(message, sizes=sizes, deadline_s=deadline_s)

    def close(self, *, wait: bool = True) -> None:
        """End the child; without `wait` this is only asked for."""
        self.left = True
        self.session.close(wait=wait)

    def leave(self, processes: BaselineProcesses) -> None:
        """Leave the child to other baselines, or end it where it is at work."""
        if not self._asked.acquire(blocking=False):
            self.close()
            return
        try:
            if not self.left:
                self.left = True
                processes.leave(self.session)
        finally:
            self._asked.release()

    def restart(self) -> None:
        """Begin anew: what the slots held is gone."""
        with self._asked:
            if self.left:
                return
            self.session.restart()
        for side in self.sides:
            side.forget_rows()
            side.stocked = False


class Grounds:
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
        quiet: Quiet,
    ) -> None:
        """No process is started yet.

        Args:
            task: the task.
            cases: on which it is timed.
            processes: those of the baselines.
            baselines: by name, see `BASELINES`.
            seed: of the contents whose results the judge knows.
            quiet: of the runner's device.
        """
        self.task = task
        self.cases = cases
        self._processes = processes
        self._baselines = baselines
        self._seed = seed
        self._quiet = quiet
        self._closed = False
        self._opening = threading.Lock()
        self._made: dict[str, Ground] = {}
        self._shared: dict[str, _Shared] = {}
        # Seconds that it took to get ready, of which others took part at the same time.
        self.spent = Spent()

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """The task's shapes that are not timed."""
        return left_out(self.task, dtype=self.cases[0].dtype)

    def of(self, case: Case) -> Ground:
        """The ground of a case; made when it is first asked for."""
        found = self._made.get(case.identity)
        if found is None:
            # First: their processes get ready while the inputs are drawn.
            sides = [self._side(name, source) for name, source in self._baselines.items()]
            with _DRAWN:
                leave = self._quiet.work()
                inputs = stocked(self.task, case, device=self._processes.device, leave=leave)
            found = self._made[case.identity] = Ground(
                task=self.task,
                case=case,
                inputs=inputs,
                device=self._processes.device,
                drawn=list(inputs.draw(stream(self._seed, "known", case.identity), KNOWN)),
                sides=sides,
                quiet=self._quiet,
            )
        return found

    def warm_up(self, effort: Effort, *, room: Callable[[], bool] = lambda: True) -> None:
        """Have the baselines compile for all cases; they are paused during laps.

        And have what is due, where it takes little memory or answers come from other processes.

        Args:
            effort: of the contests to come.
            room: whether the device has memory for more; else what is missing waits for its turn.
        """
        with self._quiet.beside(self._sessions):
            for case in self.cases:
                if self._closed or not room() or not self._warm_up(case, effort):
                    return

    def find_out(self, *, room: Callable[[], bool] = lambda: True) -> None:
        """Have what is still due, for the task that comes next."""
        for ground in list(self._made.values()):
            if not self._closed and not ground.expected and room():
                # Those that a device answers do not take all cores.
                there = self.task.with_spread is not None and self._processes.device != "cpu"
                with self.spent.on("references"), contextlib.nullcontext() if there else _ASKED:
                    ground.ask_ahead()

    def _sessions(self) -> list[Session]:
        return [shared.session for shared in list(self._shared.values())]

    def _warm_up(self, case: Case, effort: Effort) -> bool:
        """Have the baselines compile for a case; whether others may follow."""
        with self.spent.on("inputs"):
            ground = self.of(case)
        while True:
            contest = Contest(
                sides=ground.sides,
                inputs=ground.inputs,
                effort=effort,
                rng=stream(self._seed, "warm-up", case.identity),
                on_gpu=self._processes.device != "cpu",
            )
            try:
                with self.spent.on("compiling"):
                    contest.warm_up()
                break
            except ContestError as error:
                if is_out_of_memory(error.seen):
                    # It has another try when it is needed, and room is made for it.
                    for side in (s for s in ground.sides if s.name == error.name):
                        begin_anew(side, error.seen)
                    return False
                ground.leave_out(error)
        if SPARE * ground.inputs.row_bytes > SPARE_BYTES:
            self._give_back(ground)
        if self.task.foreign or ground.inputs.row_bytes <= DUE_AHEAD_BYTES:
            with self.spent.on("references"), _ASKED:
                ground.ask_ahead()
        return True

    @property
    def whole(self) -> bool:
        """Whether no baseline was lost; one that is none would be none again."""
        return all(ground.failed.keys() == ground.not_valid for ground in self._made.values())

    def fresh(self, name: str) -> Contestant | None:
        """A baseline once more, in a process of its own; None where it would have to compile."""
        if COMPILED.get(name):
            return None
        with self._quiet.work():
            session = self._processes.open(self._baselines[name], "time", shared=False)
        return Contestant(name=name, child=session)

    def park(self) -> bool:
        """Give back the memory of rows and of what is due, until the next turn.

        Gives whether all baselines are there for it.
        """
        for ground in self._made.values():
            ground.expected.clear()
            self._give_back(ground)
        return self.whole

    def _give_back(self, ground: Ground) -> None:
        """Give back the memory of rows."""
        for side in [side for side in ground.sides if side.stocked]:
            try:
                side.do(Rows(count=0, slot=side.slot), PARK_S)
                side.forget_rows()
            except ContestError as error:
                ground.leave_out(error)

    def leave(self) -> None:
        """Leave the baselines' processes to other tasks, and end those that nobody else may have.

        So all, if a baseline failed. Another thread may be getting them ready: that ends here.
        """
        whole = self.whole
        for place, shared in self._ending().items():
            if whole and place in _HANDED_ON:
                shared.leave(self._processes)
            else:
                shared.close()

    def close(self, *, wait: bool = False) -> None:
        """End the baselines' processes; without `wait` this is only asked for."""
        for shared in self._ending().values():
            shared.close(wait=wait)

    def _ending(self) -> dict[str, _Shared]:
        """The processes there are; no other is begun from here on."""
        with self._opening:
            self._closed = True
            ending, self._shared = self._shared, {}
        self._made.clear()
        return ending

    def _side(self, name: str, source: Candidate) -> Contestant:
        place = process_of(name)
        with self._opening:
            if self._closed:
                raise RuntimeError(f"{self.task.key}: its baselines were ended meanwhile")
            if place not in self._shared:
                compiles = place == PYTORCH and any(COMPILED.get(n) for n in self._baselines)
                mode: Mode = "time_compiled" if compiles else "time"
                # A context that is made meanwhile would disturb laps.
                with self._quiet.work():
                    session = self._processes.open(source, mode, shared=place in _HANDED_ON)
                self._shared[place] = _Shared(session)
            shared = self._shared[place]
        side = Contestant(
            name=name,
            child=shared,
            slot=len(shared.sides),
            compiled=COMPILED.get(name),
            examined=name in COMPILED or name == CANDIDATE,
        )
        shared.sides.append(side)
        return side
