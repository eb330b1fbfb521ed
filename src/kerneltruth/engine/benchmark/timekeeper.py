"""The timekeeper: candidates timed against baselines that stay warm between them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

from kerneltruth.cases.case import Case
from kerneltruth.cases.philox import derive, stream
from kerneltruth.clock.comparison import candidate_times, nearly_tied, standings
from kerneltruth.clock.device.lock import timing
from kerneltruth.clock.integrity.doubt import by_events
from kerneltruth.clock.integrity.valid_baselines import NotValid
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.sides import Contestant, ContestError
from kerneltruth.clock.schedule.benchmark import Contest
from kerneltruth.clock.schedule.second_look import look_again, look_closer
from kerneltruth.clock.schedule.stopwatch import Spent
from kerneltruth.clock.statistics.summary import enough
from kerneltruth.documents.model import plain
from kerneltruth.engine.benchmark.baseline_cache import BaselineCache
from kerneltruth.engine.benchmark.baselines import CANDIDATE, check_baselines
from kerneltruth.engine.benchmark.machine import Machine, Watch
from kerneltruth.engine.benchmark.memory import fitting
from kerneltruth.engine.benchmark.setup import TimingSetup
from kerneltruth.engine.benchmark.shape_document import (
    CONTRADICTED,
    Finished,
    finished,
    shape_document,
)
from kerneltruth.engine.benchmark.shared_child import begin_anew, is_out_of_memory
from kerneltruth.engine.benchmark.task_baselines import TaskBaselines
from kerneltruth.errors import lacks_memory
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner, Session
from kerneltruth.tasks.spec import Task

DEFAULT_BASELINES = ("eager", "compile", "control")


class Timekeeper:
    """Times candidates on one device, one after the other.

    Baselines stay: another candidate of the same task meets them warm, also after those of other
    tasks, as long as there is room for all. They are measured again beside every candidate all the
    same.
    """

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
        """A timekeeper.

        Args:
            runner: whose children are timed.
            machine: what is known of the device.
            seed: of contents and of the order of calls; a candidate must not know it.
            baselines: which, of `BASELINES`.
            effort: what a contest may cost.
            cold: whether Triton candidates compile anew: else nobody could tell what that takes.
            itself: whether the candidates are eager PyTorch: they get ready with the baselines.
            sources: gives a task's `eager` and `control` candidates, where there are such.
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
        self._turns = BaselineCache(runner, baselines=names, seed=seed, sources=sources)
        # Its context is made beside others, but beside no laps.
        self._turns.quiet.always(lambda: () if self._next is None else (self._next,))
        self._count = 0
        self._next: Session | None = None
        # The end of the candidate before takes a while, in which the next one may get ready.
        self._ends = ThreadPoolExecutor(1)
        self._ending: Future[None] | None = None
        self._alone_s = self._ready_s = 0.0
        self._spent = Spent()

    def close(self, *, wait: bool = False) -> None:
        """End all children; without `wait` this is only asked for."""
        if self._next is not None:
            self._next.close(wait=wait)
            self._next = None
        self._ends.shutdown(wait=wait)
        self._turns.close(wait=wait)

    @property
    def at_once(self) -> int:
        """Of how many tasks there may be baselines at a time, so that others have room."""
        return self._turns.at_once

    def ready(self, tasks: Iterable[Task]) -> None:
        """Have the baselines of tasks that come next compile, side by side: nothing is timed.

        The device may be used for other things meanwhile.
        """
        began = time.perf_counter()
        self._turns.ready(tasks, self._effort)
        self._ready_s += time.perf_counter() - began

    def ready_beside(self, tasks: Iterable[Task]) -> None:
        """Have them compile while others are timed, whose laps they do not disturb."""
        self._turns.ready_beside(tasks, self._effort)

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
        shapes = self.shapes(task, candidate, dtype=dtype, then=then)
        while True:
            try:
                next(shapes)
            except StopIteration as end:
                document: dict[str, Any] = end.value
                return document

    def shapes(
        self,
        task: Task,
        candidate: Candidate,
        *,
        dtype: str | None = None,
        then: Candidate | None = None,
    ) -> Generator[tuple[int, int, Case], None, dict[str, Any]]:
        """As `time`, which explains the arguments; yields each shape before it is timed.

        With its number, from 0, and that of all.
        """
        began = time.perf_counter()
        grounds = self._turns.begin(task, dtype)
        self._ready_s += time.perf_counter() - began
        self._count += 1
        began = time.perf_counter()
        self._alone_s = 0.0
        self._spent = Spent()
        child = None if self._itself else self._child(candidate, then)
        try:
            document, contests = yield from self._measure(grounds, candidate, child)
        finally:
            if child is not None:
                self._ending = self._ends.submit(child.close)
        with self._spent.on("grading"):
            shapes = [self._document(found) for found in contests]
        peaks = [s.pop("peak_bytes") for s in shapes]
        document |= {
            # Of tasks that got ready together the first carries the seconds of all.
            "ready_s": self._ready_s,
            "ready": dict(grounds.spent),
            "shapes": shapes,
            "not_timed": list(grounds.left_out),
            "noise_floor": max((s["noise_floor"] for s in shapes), default=0.0),
            "peak_bytes": max((p[CANDIDATE] for p in peaks), default=0),
            "baseline_peak_bytes": {
                name: max(p.get(name, 0) for p in peaks)
                for name in dict.fromkeys(n for p in peaks for n in p if n != CANDIDATE)
            },
        }
        self._ready_s = 0.0
        grounds.spent.clear()
        if document["outcome"] != "timed":
            return document
        with self._spent.on("again"):
            self._look_again(shapes, [found.contest for found in contests])
        wrong = next((s for s in shapes if s["graded"]["wrong"]), None)
        if wrong is not None:
            said = f"{wrong['summary']}: {wrong['graded']['wrong'][0]}"
            document |= {"outcome": "wrong", "detail": said}
            for b in (b for s in shapes for b in s["baselines"].values()):
                # Whatever took so long, it was not the task.
                b["outcome"] = "tie" if b["outcome"] == "faster" else b["outcome"]
        elif any(CONTRADICTED & {*s["flags"]} for s in shapes):
            document["outcome"] = "timing_suspect"
        return document | {
            "device_s": self._alone_s + self._spent["again"],
            "spent": dict(self._spent),
            "seconds": time.perf_counter() - began,
        }

    def _document(self, found: Finished) -> dict[str, Any]:
        """What a contest shows; where grading lacks memory, once more with what others held."""
        document = shape_document(found, machine=self._machine)
        if lacks_memory(document["graded"]["not_graded"] or "") and self._turns.make_room():
            return shape_document(found, machine=self._machine)
        return document

    def _measure(
        self, grounds: TaskBaselines, candidate: Candidate, child: Session | None
    ) -> Generator[tuple[int, int, Case], None, tuple[dict[str, Any], list[Finished]]]:
        """The start of the document, and a contest for each shape until one fails."""
        contests: list[Finished] = []
        document: dict[str, Any] = {"outcome": "timed", "shapes": []}
        for number, case in enumerate(grounds.cases):
            yield number, len(grounds.cases), case
            try:
                with self._spent.on("inputs"):
                    ground = grounds.of(case)
                side = ground.itself() if child is None else _contestant(child)
                found = self._contest(ground, side, candidate)
                contests.append(self._confirmed(found, grounds, candidate))
            except ContestError as error:
                return document | _failed(error, case), contests
            if len(contests) == 1:
                import_s = None if child is None else child.loaded.seconds
                document |= {"import_s": import_s} | self._costs(side)
        return document, contests

    def _child(self, candidate: Candidate, then: Candidate | None) -> Session:
        """The candidate's child, which may have been got ready; and one for who comes then."""
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
        """Wait until nothing is left of the candidate before."""
        if self._ending is not None:
            self._ending.result()
            self._ending = None

    def _open(self, candidate: Candidate, *, ahead: bool = False) -> Session:
        cold = self._cold and candidate.language == "triton"
        return self._runner.open(candidate, mode="time", ahead=ahead, cold=cold)

    def _look_again(self, shapes: list[dict[str, Any]], contests: list[Contest]) -> None:
        """Time baselines that were beaten once more, now that the candidate is gone."""
        with timing(self._runner.device), self._turns.quiet.laps():
            for shape, contest in zip(shapes, contests, strict=True):
                # Those that began anew with a later shape have no rows for this one any more.
                there = {side.name for side in contest.sides if side.rows}
                beaten = [
                    name
                    for name, baseline in shape["baselines"].items()
                    if baseline["outcome"] == "faster" and name in there
                ]
                if not beaten:
                    continue
                self._gone()
                watch = self._machine.watch()
                watch.disturbance()
                look = look_again(contest, beaten, capped="power_capped" in shape["flags"])
                watch.disturbance()
                shape["alone"] = {
                    "us": {name: median(seconds) * 1e6 for name, seconds in look.alone_s.items()},
                    "conditions": plain(watch.conditions()),
                }
                for name in look.hindered:
                    shape["baselines"][name]["outcome"] = "tie"
                if look.hindered:
                    shape["flags"].append("baseline_hindered")

    def _costs(self, side: Contestant) -> dict[str, Any]:
        """What a candidate costs before and around its steady state."""
        return {
            "first_call_s": side.first_s,
            "compile_s": max(side.first_s - side.second_s, 0.0),
            "launch_us": side.launch_s * 1e6 if self._on_gpu else None,
        }

    def _contest(self, ground: TimingSetup, side: Contestant, candidate: Candidate) -> Finished:
        with self._spent.on("references"):
            known = ground.known()
            if ground.lacked_memory and self._turns.make_room():
                ground.expected.clear()
                known = ground.known()
        purpose = (candidate.sha256, ground.case.identity, str(self._count))
        alone = False
        while True:
            contest = Contest(
                sides=[side, *ground.baselines],
                inputs=ground.inputs,
                effort=fitting(self._effort, self._runner.device, len(ground.sides) + 2),
                rng=stream(derive(self._seed, *purpose), "contest"),
                known=known,
                too_long=partial(self._machine.too_long, ground.task, ground.case),
                elements=ground.elements(),
                on_gpu=self._on_gpu,
            )
            try:
                with self._alone() as watch:
                    began = time.perf_counter()
                    fresh = not all(s.rows for s in ground.baselines)
                    with self._spent.on("compiling"):
                        contest.warm_up()
                    with self._spent.on("leaving"):
                        self._gone()
                    with contextlib.ExitStack() as quiet:
                        with self._spent.on("pausing_others"):
                            quiet.enter_context(self._turns.quiet.laps())
                        with self._spent.on("preparing"):
                            contest.prepare(watch.disturbance)
                        began = time.perf_counter() if fresh else began
                        with self._spent.on("laps"):
                            contest.run(self._enough, watch.disturbance)
                            look_closer(contest, watch.disturbance)
                            contest.measure_warm()
                    self._alone_s += time.perf_counter() - began
                for what, seconds in contest.spent.items():
                    self._spent[what] += seconds
            except ContestError as error:
                if is_out_of_memory(error.seen):
                    self._gone()
                    # Others may have held it; once more when there is nobody left to make room.
                    freed = self._turns.make_room()
                    if freed or not alone:
                        alone = not freed
                        for each in (s for s in contest.sides if s.name == error.name):
                            begin_anew(each, error.seen)
                        continue
                if error.name == CANDIDATE:
                    raise
                ground.leave_out(error)
                side.rows, side.captured = 0, side.captured and None
                continue
            with self._spent.on("facts"):
                return finished(ground, contest, watch)

    def _confirmed(self, found: Finished, grounds: TaskBaselines, candidate: Candidate) -> Finished:
        """What was found, with a look in other processes at baselines that are nearly as quick."""
        own = candidate_times(found.contest).estimate
        seen = standings(found.contest, noise_floor=self._machine.noise_floor(own))
        near = nearly_tied(seen, self._effort.near)
        if not near:
            return found
        with self._spent.on("confirming"), contextlib.ExitStack() as ending:
            try:
                contest = self._contest_anew(found, grounds, candidate, near, ending)
            except ContestError:
                # It says nothing; what was found stands.
                return found
        return replace(found, again=contest)

    def _contest_anew(
        self,
        found: Finished,
        grounds: TaskBaselines,
        candidate: Candidate,
        near: Collection[str],
        ending: contextlib.ExitStack,
    ) -> Contest:
        """The contest once more, in processes that `ending` ends; no call is graded.

        Baselines that would have to compile stay in theirs.
        """
        sides = [_contestant(self._runner.open(candidate, mode="time"))]
        for side in found.contest.sides[1:]:
            if side.name in near:
                sides.append(grounds.fresh(side.name) or side)
        for side in sides:
            if side not in found.contest.sides:
                ending.callback(side.child.close)
        contest = Contest(
            sides=sides,
            inputs=found.ground.inputs,
            effort=fitting(self._effort, self._runner.device, len(found.contest.sides) + 4),
            rng=stream(
                derive(self._seed, candidate.sha256, found.ground.case.identity, str(self._count)),
                "confirming",
            ),
            on_gpu=self._on_gpu,
        )
        with self._alone() as watch:
            began = time.perf_counter()
            contest.warm_up()
            with self._turns.quiet.laps():
                contest.prepare(watch.disturbance)
                contest.run(self._enough, watch.disturbance)
            self._alone_s += time.perf_counter() - began
        return contest

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


def _contestant(child: Session) -> Contestant:
    return Contestant(name=CANDIDATE, child=child)


def _failed(error: ContestError, case: Case) -> dict[str, Any]:
    """The outcome of a candidate that could not be timed to the end."""
    seen = error.seen
    said = " ".join(text for text in (seen.error, seen.message) if text)
    said = ": ".join(text for text in (seen.ended, said) if text)
    said = str(error) if isinstance(error, NotValid) else said
    return {
        "outcome": "unsupported_here" if seen.ended == "unsupported" else "failed",
        "detail": f"{case.summary()}: {said}"[:400],
    }
