"""`audit --suite NAME --timed`: PyTorch's own functions timed against themselves.

Whatever the clock says of them but `tie` is a mistake of the clock, of a task or of a baseline.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import torch

from kerneltruth.clock.contestants import Effort
from kerneltruth.clock.gate import timing
from kerneltruth.clock.stocking import timed_cases
from kerneltruth.commands.audit import AuditOptions
from kerneltruth.commands.devices import device_name
from kerneltruth.commands.machine import Machine, is_known, known_machine
from kerneltruth.commands.step import Step
from kerneltruth.commands.suites import opened
from kerneltruth.commands.timed_shape import CONTRADICTED, NOT_GRADED
from kerneltruth.commands.timekeeper import Timekeeper
from kerneltruth.commands.timing import RUN_EFFORT, opponents
from kerneltruth.errors import UserError
from kerneltruth.importers.kernelbench.suite import Problems
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.registry import find, tasks_of
from kerneltruth.tasks.spec import Task

# A tie says that two copies are equal only as far as its interval reaches.
WIDEST = 0.02
EAGER = "eager"
# What is not wrong with the clock, if it is said why.
STATED = frozenset({"no_valid_baseline", "not_graded", "unsupported_here"})
# Outcomes that may be otherwise the next time; others would only go the same way again.
DOUBTED = frozenset({"faster", "slower", "unresolved", "suspect"})
# So many tasks get ready side by side, while those before them are timed.
PART = 8
# Two copies of a function need no more than the width above; half of it leaves room for the
# machine's noise.
QUICK = replace(
    RUN_EFFORT,
    lap_s=0.001,
    graph_lap_s=0.003,
    precision=WIDEST / 2,
    budget_s=0.2,
    sampled=1,
)
# What was no tie is timed once more, as long as `time` does: of hundreds of intervals of 95% some
# do not contain 1.
AGAIN = Effort()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedShape:
    """How PyTorch's function stands against itself on one shape.

    Attributes:
        shape: empty where the task could not be timed at all.
        outcome: `tie`; or `faster`, `slower`, `unresolved` (a tie of a wider interval), `suspect`,
            `wrong`, `failed`, and those of `STATED`.
        why: of all but `tie`.
        again: whether it was timed once more.
    """

    task: str
    shape: str
    outcome: str
    why: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    us: float | None = None
    efficiency: float | None = None
    again: bool = False


def time_suite(
    options: AuditOptions, runner: Runner, start: float
) -> Generator[Step, None, dict[str, Any]]:
    """Time the functions with a runner that is warming up; `start` is when the command began.

    Ctrl-C and a spent budget end it early: what was timed is in the document, and what was not.

    Raises:
        UserError: `--only` names a task that the suite does not have, or there is no such suite.
    """
    with opened(options.suite, runner) as suite:
        tasks = _tasks(suite or "", options.only)
        audit = _Audit(options, runner, tasks, start=start)
        try:
            yield from audit.run()
        except KeyboardInterrupt:
            audit.interrupted = True
        return audit.document()


class _Audit:
    """An audit in progress: what was found of each task."""

    def __init__(
        self, options: AuditOptions, runner: Runner, tasks: Sequence[Task], *, start: float
    ) -> None:
        self._options = options
        self._runner = runner
        self._tasks = tasks
        self._start = start
        self._found: dict[str, list[TimedShape]] = {}
        self._spent: defaultdict[str, float] = defaultdict(float)
        self.interrupted = False

    def run(self) -> Iterator[Step]:
        """Time all tasks, and once more those whose outcome is in doubt."""
        # Each of the threads that prepare would else have threads for all cores.
        torch.set_num_threads(1)
        total = len(self._tasks)
        if not is_known(self._runner):
            yield Step(done=0, total=total, text="measuring what this device can do, once")
        machine = known_machine(self._runner)
        for effort in (QUICK, AGAIN):
            left = [left for task in self._tasks for left in _left(task, self._found.get(task.key))]
            keeper = _keeper(self._options, self._runner, machine, effort)
            try:
                for task, document, seconds in self._timed(keeper, left):
                    shapes = shapes_of(task.key, document, again=effort is AGAIN)
                    self._found[task.key] = _better(self._found.get(task.key), shapes)
                    for parts in (document.get("spent", {}), document["ready"]):
                        for part, more in parts.items():
                            self._spent[part] += more
                    yield _step(
                        task.key,
                        self._found[task.key],
                        done=len(self._found),
                        total=total,
                        seconds=seconds,
                    )
            finally:
                keeper.close(wait=True)

    def _timed(
        self, keeper: Timekeeper, tasks: Sequence[Task]
    ) -> Iterator[tuple[Task, dict[str, Any], float]]:
        """The document of each task, and its seconds; some get ready side by side before."""
        part = max(1, min(PART, keeper.at_once // 2))
        parts = [tasks[begin : begin + part] for begin in range(0, len(tasks), part)]
        with timing(self._runner.device):
            keeper.ready(parts[0] if parts else ())
            for now, coming in zip_longest(parts, parts[1:], fillvalue=()):
                keeper.ready_beside(coming)
                for task in now:
                    if self._is_over():
                        return
                    began = time.perf_counter()
                    document = _document_of(keeper, task)
                    self._spent["waited_for_baselines"] += document.get("ready_s", 0.0)
                    yield task, document, time.perf_counter() - began

    def _is_over(self) -> bool:
        budget_s = self._options.budget_s
        return budget_s is not None and time.monotonic() - self._start > budget_s

    def document(self) -> dict[str, Any]:
        """What the command returns, of what was timed so far."""
        found = [shape for task in self._tasks for shape in self._found.get(task.key, ())]
        return _document(
            self._options,
            found,
            self._runner.device,
            not_timed=[task.key for task in self._tasks if task.key not in self._found],
            interrupted=self.interrupted,
            spent=dict(self._spent),
            seconds=time.monotonic() - self._start,
        )


def _document_of(keeper: Timekeeper, task: Task) -> dict[str, Any]:
    try:
        return keeper.time(task, opponents(task)[EAGER])
    except (MemoryError, RuntimeError) as error:
        # What the judge itself needs the device for, such as grading.
        said = f"{type(error).__name__}: {error}"[:300]
        return {"outcome": "failed", "detail": said, "shapes": [], "ready": {}}


def _tasks(suite: str, only: Sequence[str]) -> list[Task]:
    """The tasks that have a function of PyTorch's."""
    known = tasks_of(suite)
    if isinstance(known, Problems) and not only:
        known.derive(known.problems)
    keys = [find(name, suite).key for name in only] or list(known)
    tasks = [find(key, suite) for key in dict.fromkeys(keys)]
    tasks = [task for task in tasks if task.unrefereeable is None and opponents(task).get(EAGER)]
    if not tasks:
        raise UserError(f"--suite {suite}: it has no functions of plain PyTorch to be timed")
    return tasks


def _keeper(options: AuditOptions, runner: Runner, machine: Machine, effort: Effort) -> Timekeeper:
    return Timekeeper(
        runner,
        machine=machine,
        seed=options.seed,
        baselines=(EAGER,),
        effort=effort,
        itself=True,
        sources=opponents,
    )


def shapes_of(task: str, document: dict[str, Any], *, again: bool = False) -> list[TimedShape]:
    """What a document of `time` says of each shape."""
    found = [_shape(task, shape, again=again) for shape in document["shapes"]]
    if document["outcome"] in ("failed", "unsupported_here"):
        why = document["detail"]
        outcome = "no_valid_baseline" if "no valid baseline" in why else document["outcome"]
        found.append(TimedShape(task=task, shape="", outcome=outcome, why=why, again=again))
    return found


def _shape(task: str, shape: dict[str, Any], *, again: bool) -> TimedShape:
    outcome, why = _outcome(shape)
    b = shape["baselines"].get(EAGER, {})
    return TimedShape(
        task=task,
        shape=shape["summary"],
        outcome=outcome,
        why=why,
        ratio=b.get("ratio"),
        low=b.get("low"),
        high=b.get("high"),
        us=b.get("us"),
        efficiency=b.get("efficiency"),
        again=again,
    )


def _outcome(shape: dict[str, Any]) -> tuple[str, str]:
    """The outcome of a shape, and why it is no tie."""
    flags = ", ".join(shape["flags"])
    if shape["graded"]["wrong"]:
        return "wrong", shape["graded"]["wrong"][0]
    if {*shape["flags"]} & CONTRADICTED:
        return "suspect", flags
    if EAGER not in shape["baselines"]:
        return "no_valid_baseline", shape["baselines_failed"].get(EAGER, "it could not be timed")
    b = shape["baselines"][EAGER]
    said = f"{b['ratio']:.4f} ({b['low']:.4f} to {b['high']:.4f}){f'; {flags}' if flags else ''}"
    if b["outcome"] != "tie":
        return b["outcome"], said
    if b["low"] < 1 - WIDEST or b["high"] > 1 + WIDEST:
        return "unresolved", said
    if NOT_GRADED in shape["flags"]:
        return "not_graded", shape["graded"]["not_graded"] or "no call was graded"
    return "tie", ""


def _left(task: Task, shapes: Sequence[TimedShape] | None) -> Iterator[Task]:
    """The task as it is to be timed, if at all: of what was timed, shapes in doubt once more."""
    if shapes is None:
        yield task
        return
    doubted = {shape.shape for shape in shapes if shape.outcome in DOUBTED}
    perf = tuple(p for p in task.perf if _summary(replace(task, perf=(p,))) in doubted)
    if perf or _summary(replace(task, perf=())) in doubted:
        yield replace(task, perf=perf)


def _summary(task: Task) -> str:
    return timed_cases(task)[0].summary()


def _better(before: list[TimedShape] | None, now: list[TimedShape]) -> list[TimedShape]:
    """Shapes of both times: those that were a tie before stay it."""
    merged = {s.shape: s for s in before or ()}
    ties = {name for name, s in merged.items() if s.outcome == "tie"}
    merged |= {s.shape: s for s in now if s.shape not in ties}
    return list(merged.values())


def _step(key: str, shapes: Sequence[TimedShape], *, done: int, total: int, seconds: float) -> Step:
    other = [s for s in shapes if s.outcome != "tie"]
    said = "; ".join(f"{s.shape}: {s.outcome}" for s in other) or "tie"
    text = f"{key}: {said} ({seconds:.1f} s)"
    return Step(done=done, total=total, text=text, notable=bool(other))


def _document(
    options: AuditOptions,
    shapes: Sequence[TimedShape],
    device: str,
    *,
    not_timed: Sequence[str],
    interrupted: bool,
    spent: dict[str, float],
    seconds: float,
) -> dict[str, Any]:
    outcomes = Counter(shape.outcome for shape in shapes)
    other = [s for s in shapes if s.outcome != "tie"]
    return {
        "schema": 1,
        "suite": options.suite,
        "device": device_name(device),
        "shapes": [
            {
                "task": s.task,
                "shape": s.shape,
                "outcome": s.outcome,
                "ratio": s.ratio,
                "low": s.low,
                "high": s.high,
                "us": s.us,
                "efficiency": s.efficiency,
                "again": s.again,
            }
            for s in shapes
        ],
        "summary": {
            "tasks": len({s.task for s in shapes}),
            "outcomes": dict(outcomes),
            "again": sum(s.again for s in shapes),
            "good": all(s.outcome in STATED for s in other) and bool(shapes),
        },
        "not_timed": list(not_timed),
        "interrupted": interrupted,
        # The judge's seconds by errand; an errand within another counts in both.
        "spent": spent,
        "seconds": seconds,
        "timed": len(shapes),
        "tie": outcomes["tie"],
        "other": [
            {"task": s.task, "shape": s.shape, "outcome": s.outcome, "why": s.why} for s in other
        ],
    }
