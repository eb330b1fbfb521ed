"""The timekeeper: candidates timed against baselines that stay warm between them."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from kerneltruth.cases.case import Case
from kerneltruth.cases.philox import derive, stream
from kerneltruth.clock.contest import Contest
from kerneltruth.clock.contestants import Contestant, ContestError, Effort
from kerneltruth.clock.gate import timing
from kerneltruth.clock.standing import by_events, is_suspect, was_hindered
from kerneltruth.clock.stocking import stocked, timed_cases
from kerneltruth.clock.summary import enough
from kerneltruth.commands.ground import KNOWN, Ground
from kerneltruth.commands.machine import Machine, Watch, fitting
from kerneltruth.commands.timed_shape import CONTRADICTED, Finished, finished, shape_document
from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Mode, Runner, Session
from kerneltruth.runner.protocol import Errand, Observation
from kerneltruth.tasks.spec import Task

CANDIDATE = "candidate"
# What `torch.compile` is told for each baseline that it makes of eager PyTorch.
COMPILED = {
    "eager": None,
    "compile": "default",
    # Without graphs of its own: calls of everyone are captured, or of nobody.
    "compile_max_autotune": "max-autotune-no-cudagraphs",
}
BASELINES = (*COMPILED, "control")
DEFAULT_BASELINES = ("eager", "compile", "control")


class _Shared:
    """A child that several contests share, each with a slot of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.sides: list[Contestant] = []

    def errand(
        self, message: Errand, *, sizes: dict[str, int] | None = None, deadline_s: float = 30.0
    ) -> Observation:
        return self.session.errand(message, sizes=sizes, deadline_s=deadline_s)

    def restart(self) -> None:
        """Begin anew: what the slots held is gone."""
        self.session.restart()
        for side in self.sides:
            side.rows, side.captured = 0, side.captured and None


class Timekeeper:
    """Times candidates on one device, one after the other.

    Baselines of the task in hand stay: another candidate of the same task meets them warm. They
    are measured again beside every candidate all the same.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        machine: Machine,
        seed: int,
        baselines: tuple[str, ...] = DEFAULT_BASELINES,
        effort: Effort | None = None,
        sources: Callable[[Task], dict[str, Candidate]],
    ) -> None:
        """A timekeeper.

        Args:
            runner: whose children are timed.
            machine: what is known of the device.
            seed: of contents and of the order of calls; a candidate must not know it.
            baselines: which, of `BASELINES`.
            effort: what a contest may cost.
            sources: gives a task's `eager` and `control` candidates, where there are such.
        """
        unknown = [name for name in baselines if name not in BASELINES]
        if unknown:
            raise UserError(f"--baseline {unknown[0]!r}: must be one of {', '.join(BASELINES)}")
        self._runner = runner
        self._machine = machine
        self._seed = seed
        self._baselines = baselines
        self._effort = effort or Effort()
        self._sources = sources
        self._on_gpu = runner.device != "cpu"
        self._key: tuple[str, str | None] | None = None
        self._grounds: dict[str, Ground] = {}
        self._shared: dict[str, _Shared] = {}
        self._count = 0
        self._next: Session | None = None
        self._alone_s = 0.0
        self._spent: defaultdict[str, float] = defaultdict(float)

    def close(self) -> None:
        """End all children."""
        if self._next is not None:
            self._next.close(wait=False)
            self._next = None
        self._forget()

    def _forget(self) -> None:
        """End the baselines' children."""
        for shared in self._shared.values():
            shared.session.close(wait=False)
        self._shared.clear()
        self._grounds.clear()

    def time(
        self,
        task: Task,
        candidate: Candidate,
        *,
        dtype: str | None = None,
        then: Candidate | None = None,
    ) -> dict[str, Any]:
        """Time a candidate on the task's shapes: the document of `time --json`, less its frame.

        Args:
            task: the task.
            candidate: one of its candidates.
            dtype: of the shapes; None takes the task's first.
            then: who is timed next: its process gets ready meanwhile, and loads nothing.
        """
        if (task.key, dtype) != self._key:
            self._forget()
            self._key = (task.key, dtype)
        self._count += 1
        began = time.perf_counter()
        self._alone_s = 0.0
        self._spent = defaultdict(float)
        contests: list[Finished] = []
        child = self._child(candidate, then)
        # Its end takes a while; what it showed is graded meanwhile.
        with ThreadPoolExecutor(1) as ending:
            try:
                document = self._measure(task, dtype, candidate, child, contests)
            finally:
                ending.submit(child.close)
            with self._spending("grading"):
                shapes = [shape_document(found, machine=self._machine) for found in contests]
        document["shapes"] = shapes
        if document["outcome"] == "failed":
            return document
        self._look_again(shapes, [found.contest for found in contests])
        wrong = next((s for s in shapes if s["graded"]["wrong"]), None)
        if wrong is not None:
            document |= {"outcome": "wrong", "detail": wrong["graded"]["wrong"][0]}
            for b in (b for s in shapes for b in s["baselines"].values()):
                # Whatever took so long, it was not the task.
                b["outcome"] = "tie" if b["outcome"] == "faster" else b["outcome"]
        elif any(CONTRADICTED & {*s["flags"]} for s in shapes):
            document["outcome"] = "timing_suspect"
        peaks = [s.pop("peak_bytes") for s in shapes]
        return document | {
            "device_s": self._alone_s,
            "spent": dict(self._spent),
            "seconds": time.perf_counter() - began,
            "noise_floor": max((s["noise_floor"] for s in shapes), default=0.0),
            "peak_bytes": max((p[CANDIDATE] for p in peaks), default=0),
            "baseline_peak_bytes": {
                name: max(p.get(name, 0) for p in peaks)
                for name in dict.fromkeys(n for p in peaks for n in p if n != CANDIDATE)
            },
        }

    def _measure(
        self,
        task: Task,
        dtype: str | None,
        candidate: Candidate,
        child: Session,
        contests: list[Finished],
    ) -> dict[str, Any]:
        """Add a contest for each shape; gives the start of the document."""
        document: dict[str, Any] = {"outcome": "timed", "shapes": []}
        for case in timed_cases(task, dtype=dtype, seed=self._seed):
            side = Contestant(name=CANDIDATE, child=child)
            try:
                with self._spending("inputs"):
                    ground = self._ground(task, case)
                contests.append(self._contest(ground, side, candidate))
            except ContestError as error:
                return document | _failed(error, case)
            if len(contests) == 1:
                document |= self._costs(child, side)
        return document

    def _child(self, candidate: Candidate, then: Candidate | None) -> Session:
        """The candidate's child, which may have been got ready; and one for who comes then."""
        child, self._next = self._next, None
        if child is not None and child.candidate != candidate:
            child.close(wait=False)
            child = None
        child = child or self._runner.open(candidate, mode="time")
        child.load()
        if then is not None:
            self._next = self._runner.open(then, mode="time", ahead=True)
        return child

    def _look_again(self, shapes: list[dict[str, Any]], contests: list[Contest]) -> None:
        """Time baselines that were beaten once more, now that the candidate is gone."""
        with timing(self._runner.device):
            for shape, contest in zip(shapes, contests, strict=True):
                beaten = [n for n, b in shape["baselines"].items() if b["outcome"] == "faster"]
                if not beaten:
                    continue
                try:
                    alone = contest.alone()
                except ContestError:
                    continue
                for name in beaten:
                    if was_hindered(contest, name, alone[name]):
                        shape["baselines"][name]["outcome"] = "tie"
                        shape["flags"].append("baseline_hindered")

    def _costs(self, child: Session, side: Contestant) -> dict[str, Any]:
        """What a candidate costs before and around its steady state."""
        return {
            "import_s": child.loaded.seconds,
            "first_call_s": side.first_s,
            "compile_s": max(side.first_s - side.second_s, 0.0),
            "launch_us": side.launch_s * 1e6 if self._on_gpu else None,
        }

    def _ground(self, task: Task, case: Case) -> Ground:
        """What contests on the case share; made when it is first asked for."""
        found = self._grounds.get(case.identity)
        if found is None:
            # First: their processes get ready while the inputs are drawn.
            sides = self._sides(task)
            inputs = stocked(task, case, device=self._runner.device)
            found = Ground(
                task=task,
                case=case,
                inputs=inputs,
                device=self._runner.device,
                drawn=list(inputs.draw(stream(self._seed, "known", case.identity), KNOWN)),
                sides=sides,
            )
            self._grounds[case.identity] = found
        return found

    def _sides(self, task: Task) -> list[Contestant]:
        """The baselines that the task has, for one more contest."""
        sources = self._sources(task)
        found = [
            (n, sources.get("control" if n == "control" else "eager")) for n in self._baselines
        ]
        return [self._side(name, source) for name, source in found if source is not None]

    def _side(self, name: str, source: Candidate) -> Contestant:
        """A baseline: all shapes of a task in one child."""
        compiled = COMPILED.get(name)
        if name not in self._shared:
            mode: Mode = "time" if compiled is None else "time_compiled"
            self._shared[name] = _Shared(self._runner.open(source, mode=mode))
        shared = self._shared[name]
        side = Contestant(name=name, child=shared, slot=len(shared.sides), compiled=compiled)
        shared.sides.append(side)
        return side

    def _contest(self, ground: Ground, side: Contestant, candidate: Candidate) -> Finished:
        with self._spending("references"):
            known = ground.known()
        purpose = (candidate.sha256, ground.case.identity, str(self._count))
        while True:
            contest = Contest(
                sides=[side, *ground.sides],
                inputs=ground.inputs,
                effort=fitting(self._effort, self._runner.device, len(ground.sides) + 2),
                rng=stream(derive(self._seed, *purpose), "contest"),
                known=known,
                on_gpu=self._on_gpu,
            )
            try:
                with self._alone() as watch:
                    began = time.perf_counter()
                    fresh = not all(s.rows for s in ground.sides)
                    with self._spending("warm_up"):
                        contest.prepare()
                    began = time.perf_counter() if fresh else began
                    with self._spending("laps"):
                        contest.run(self._enough, watch.disturbance)
                        if is_suspect(contest):
                            # So looks a host that was busy for a moment, too.
                            wanted = 2 * len(contest.blocks)
                            contest.run(partial(_has_blocks, wanted), watch.disturbance)
                        contest.measure_warm()
                    self._alone_s += time.perf_counter() - began
            except ContestError as error:
                if error.name == CANDIDATE:
                    raise
                # A baseline that cannot go on says nothing of the candidate.
                ground.failed[error.name] = str(error)
                ground.sides = [s for s in ground.sides if s.name != error.name]
                side.rows, side.captured = 0, None
                continue
            with self._spending("facts"):
                return finished(ground, contest, watch)

    @contextlib.contextmanager
    def _spending(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self._spent[what] += time.perf_counter() - began

    @contextlib.contextmanager
    def _alone(self) -> Iterator[Watch]:
        with timing(self._runner.device):
            yield self._machine.watch()

    def _enough(self, contest: Contest) -> bool:
        least, precision = self._effort.blocks[0], self._effort.precision
        return len(contest.sides) > 1 and all(
            enough(by_events(contest, side.name), precision=precision, least=least)
            for side in contest.sides[1:]
        )


def _has_blocks(wanted: int, contest: Contest) -> bool:
    return len(contest.blocks) >= wanted


def _failed(error: ContestError, case: Case) -> dict[str, Any]:
    """The outcome of a candidate that could not be timed to the end."""
    seen = error.seen
    said = seen.message or seen.ended
    return {
        "outcome": "failed",
        "detail": f"{case.summary()}: {seen.ended}: {seen.error or ''} {said}"[:400],
    }
