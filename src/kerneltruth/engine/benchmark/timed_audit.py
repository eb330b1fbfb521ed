"""Run `audit --suite NAME --timed`: PyTorch's own functions timed against themselves.

Any result but `tie` is a mistake of the clock, of a task or of a baseline.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from kerneltruth.clock.device.lock import device_for_timing
from kerneltruth.clock.protocol.effort import RUN_EFFORT, Effort
from kerneltruth.clock.schedule.stopwatch import Stopwatch
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.clock.statistics.summary import WIDEST
from kerneltruth.documents.model import model_of
from kerneltruth.documents.suites import (
    SelfTimed,
    SelfTimedReason,
    SelfTimedSummary,
    TimedSuiteDocument,
)
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.engine.benchmark.audited_shapes import (
    EAGER,
    RETIMED,
    STATED,
    AuditedShape,
    better,
    shapes_of,
)
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.machine import Machine, is_known, known_machine
from kerneltruth.engine.devices import device_name
from kerneltruth.engine.requests import AuditRequest, Step
from kerneltruth.engine.scheduling.local_pool import LocalPool
from kerneltruth.engine.scheduling.scheduler import Lost, Progress, Scheduler
from kerneltruth.engine.suite_audit import AFTER_BUDGET_S, ProofJob
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import open_tasks, opened
from kerneltruth.tasks.registry import eager_modules, find, key_of
from kerneltruth.tasks.spec import Task

# Prepare this many tasks side by side, while those before them are timed.
PART = 8
# Derive this many of a user's problems side by side, one per core, before the first is timed.
AHEAD = 32
# Seconds of a budget kept for the second look: to begin it, and for each shape in doubt.
BEGIN_S, LOOK_S = 10.0, 3.0
# Two copies of a function need no more than the width above; half of it leaves room for the
# machine's noise.
QUICK = replace(
    RUN_EFFORT,
    batch_s=0.001,
    graph_batch_s=0.003,
    precision=WIDEST / 2,
    budget_s=0.2,
    spot_checks=1,
)
# Time again what is not a tie, in as many blocks as `time` takes: of hundreds of intervals of 95%,
# some do not contain 1.
THOROUGH = Effort(precision=WIDEST / 4, warm=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What the timing process has found.

    Attributes:
        task: the task of these shapes; None if none was timed.
        shapes: all of the task, as they stand now.
        trouble: why the task cannot be timed.
        spent: seconds by activity, of all tasks so far.
    """

    text: str
    task: str | None = None
    shapes: tuple[AuditedShape, ...] = ()
    trouble: str | None = None
    spent: dict[str, float] = field(default_factory=dict)


# Makes what times the functions of a request, with this effort.
MakeBenchmarker = Callable[[AuditRequest, Runner, Machine, Effort], Benchmarker]


def time_suite(
    options: AuditRequest,
    runner: Runner,
    start: float,
    *,
    benchmarker: MakeBenchmarker | None = None,
) -> Generator[Step, None, TimedSuiteDocument]:
    """Time the functions of a suite.

    Ctrl-C and a spent budget end it early: the document lists what was timed and what was not.

    Raises:
        UserError: `--only` names a task that the suite does not have, or there is no such suite.
    """
    # References of one part's tasks are computed side by side.
    with opened(options.suite, runner, judges=PART) as suite:
        keys = keys_of(suite or "", options.only)
        audit = _Audit(
            replace(options, suite=suite),
            runner,
            keys,
            start=start,
            benchmarker=benchmarker or benchmarker_of_itself,
        )
        try:
            yield from audit.run()
        except KeyboardInterrupt:
            audit.interrupted = True
        return audit.document()


class _Audit:
    """An audit in progress: what was found for each task.

    A separate process does the timing; it ends when the budget is spent, whatever it is doing.
    """

    def __init__(
        self,
        options: AuditRequest,
        runner: Runner,
        keys: Sequence[str],
        *,
        start: float,
        benchmarker: MakeBenchmarker,
    ) -> None:
        self._options = options
        self._benchmarker = benchmarker
        self._suite = options.suite or ""
        self._runner = runner
        self._keys = keys
        self._until = math.inf if options.budget_s is None else start + options.budget_s
        self._start = start
        self._found: dict[str, list[AuditedShape]] = {}
        self._troubles: dict[str, str] = {}
        self._spent = Stopwatch()
        self._is_thorough = False
        self.interrupted = False

    def run(self) -> Iterator[Step]:
        """Time all tasks, and time doubtful ones again.

        Raises:
            EnvironmentFault: the process that times died, and the one after it.
        """
        jobs = [ProofJob(task=self._suite)]
        late = self._until + AFTER_BUDGET_S
        process: Scheduler[ProofJob, None] = LocalPool(work=self._time_all, workers=1, until=late)
        for event in process.run(jobs):
            if isinstance(event, Lost):
                raise EnvironmentFault(f"the timing process: {event.reason}")
            if isinstance(event, Progress):
                yield self._take(event.news)

    def _take(self, news: News) -> Step:
        if news.task is not None and news.trouble is None:
            self._found[news.task] = list(news.shapes)
        elif news.task is not None and news.trouble is not None:
            self._troubles[news.task] = news.trouble
        self._spent.update(news.spent)
        return Step(
            done=len(self._found) + len(self._troubles),
            total=len(self._keys),
            text=news.text,
            notable=any(s.outcome != "tie" for s in news.shapes),
        )

    def _time_all(self, _: ProofJob, tell: Callable[[News], None]) -> None:
        """Run in its own process; a restarted one goes on from what was found before."""
        # Otherwise each preparing thread would use threads for all cores.
        torch.set_num_threads(1)
        if not is_known(self._runner):
            tell(News(text="measuring what this device can do, once"))
        # The runner's children are those of the command's own process.
        machine = known_machine(self._runner, root=os.getppid())
        for effort in (QUICK, THOROUGH):
            self._is_thorough = effort is THOROUGH
            benchmarker = self._benchmarker(self._options, self._runner, machine, effort)
            try:
                for task, document, seconds in self._timed(benchmarker, tell):
                    shapes = shapes_of(task.key, document, again=self._is_thorough)
                    shapes = better(self._found.get(task.key), shapes)
                    for parts in (document.spent or {}, document.ready or {}):
                        for part, more in parts.items():
                            self._spent[part] += more
                    news = News(
                        text=_said(task.key, shapes, seconds),
                        task=task.key,
                        shapes=tuple(shapes),
                        spent=dict(self._spent),
                    )
                    self._take(news)
                    tell(news)
            finally:
                benchmarker.close(wait=True)

    def _timed(
        self, benchmarker: Benchmarker, tell: Callable[[News], None]
    ) -> Iterator[tuple[Task, CandidateTimes, float]]:
        """Yield each task's document and seconds; some tasks are prepared side by side."""
        parts = self._parts(max(1, min(PART, benchmarker.capacity // 2)), tell)
        with device_for_timing(self._runner.device):
            now = next(parts, ())
            benchmarker.ready(now)
            while now:
                coming = next(parts, ())
                benchmarker.prepare_in_background(coming)
                for task in now:
                    if self._is_over():
                        return
                    began = time.perf_counter()
                    document = _document_of(benchmarker, task)
                    self._spent["waited_for_baselines"] += document.ready_s or 0.0
                    yield task, document, time.perf_counter() - began
                now = coming

    def _parts(self, size: int, tell: Callable[[News], None]) -> Iterator[tuple[Task, ...]]:
        """Return what is left to be timed, in parts of some tasks."""
        known = open_tasks(self._suite)
        left: list[Task] = []
        for place, key in enumerate(self._keys):
            if known is not None and place % AHEAD == 0 and not self._is_over():
                coming = map(known.bare, self._keys[place : place + AHEAD])
                # One part is timed, the next is prepared, and one may be computing results.
                with self._spent.on("deriving"):
                    known.suite.prepare(coming, 3 * size)
            if self._is_over() or key in self._troubles or not self._needs_timing(key):
                continue
            task = find(key, self._suite)
            if task.unrefereeable is not None:
                news = News(text=f"{key}: not timed", task=key, trouble=task.unrefereeable)
                self._take(news)
                tell(news)
                continue
            left += still_to_time(task, self._found.get(key))
            if len(left) >= size:
                yield tuple(left)
                left = []
        if left:
            yield tuple(left)

    def _needs_timing(self, key: str) -> bool:
        """Return whether a task is to be timed: in the second look, only a doubtful one."""
        shapes = self._found.get(key)
        if shapes is None:
            return not self._is_thorough
        return any(shape.outcome in RETIMED for shape in shapes)

    def _is_over(self) -> bool:
        suspected = sum(s.outcome in RETIMED for shapes in self._found.values() for s in shapes)
        kept = BEGIN_S + LOOK_S * suspected if suspected and not self._is_thorough else 0.0
        return time.monotonic() > self._until - kept

    def document(self) -> TimedSuiteDocument:
        """Build the document from what was timed so far."""
        found = [shape for key in self._keys for shape in self._found.get(key, ())]
        return suite_document(
            self._options,
            found,
            self._runner.device,
            not_timed=[k for k in self._keys if k not in self._found and k not in self._troubles],
            unrefereeable=self._troubles,
            interrupted=self.interrupted,
            spent=dict(self._spent),
            seconds=time.monotonic() - self._start,
        )


def _document_of(benchmarker: Benchmarker, task: Task) -> CandidateTimes:
    try:
        return benchmarker.time(task, baseline_sources(task)[EAGER])
    except (MemoryError, RuntimeError) as error:
        # The judge itself needs the device too, for example to grade.
        said = f"{type(error).__name__}: {error}"[:300]
        return CandidateTimes(outcome="failed", detail=said)


def keys_of(suite: str, only: Sequence[str]) -> list[str]:
    """Return the tasks with a function of PyTorch; a user's problem is its own function."""
    known, keys = open_tasks(suite), [key_of(name, suite) for name in only]
    if known is None:
        keys = [k for k in keys or eager_modules(suite) if baseline_sources(find(k)).get(EAGER)]
    else:
        listed = known.listed()
        keys = sorted(keys or known, key=lambda key: listed[known.bare(key)].rank)
    keys = list(dict.fromkeys(keys))
    if not keys:
        raise UserError(f"--suite {suite}: it has no functions of plain PyTorch to be timed")
    return keys


def benchmarker_of_itself(
    options: AuditRequest, runner: Runner, machine: Machine, effort: Effort
) -> Benchmarker:
    """Make a benchmarker of eager PyTorch against itself."""
    return Benchmarker(
        runner,
        machine=machine,
        seed=options.seed,
        baselines=(EAGER,),
        effort=effort,
        itself=True,
        sources=baseline_sources,
    )


def still_to_time(task: Task, shapes: Sequence[AuditedShape] | None) -> Iterator[Task]:
    """Return the task as it is to be timed, if at all: in the second look, only doubtful shapes."""
    if shapes is None:
        yield task
        return
    suspected = {shape.shape for shape in shapes if shape.outcome in RETIMED}
    perf = tuple(p for p in task.perf if _summary(replace(task, perf=(p,))) in suspected)
    if perf or _summary(replace(task, perf=())) in suspected:
        yield replace(task, perf=perf)


def _summary(task: Task) -> str:
    return timed_cases(task)[0].summary()


def _said(key: str, shapes: Sequence[AuditedShape], seconds: float) -> str:
    other = [s for s in shapes if s.outcome != "tie"]
    said = "; ".join(f"{s.shape}: {s.outcome}" for s in other) or "tie"
    return f"{key}: {said} ({seconds:.1f} s)"


def suite_document(
    options: AuditRequest,
    shapes: Sequence[AuditedShape],
    device: str,
    *,
    not_timed: Sequence[str],
    unrefereeable: Mapping[str, str],
    interrupted: bool,
    spent: dict[str, float],
    seconds: float,
) -> TimedSuiteDocument:
    """Count the outcomes of all shapes; the document of the command."""
    outcomes = Counter(shape.outcome for shape in shapes)
    other = [s for s in shapes if s.outcome != "tie"]
    return TimedSuiteDocument(
        suite=options.suite,
        device=device_name(device),
        shapes=tuple(model_of(SelfTimed, s) for s in shapes),
        summary=SelfTimedSummary(
            tasks=len({s.task for s in shapes}),
            outcomes=dict(outcomes),
            again=sum(s.again for s in shapes),
            good=all(s.outcome in STATED for s in other) and bool(shapes),
        ),
        not_timed=tuple(not_timed),
        unrefereeable=dict(unrefereeable),
        interrupted=interrupted,
        spent=spent,
        seconds=seconds,
        timed=len(shapes),
        tie=outcomes["tie"],
        other=tuple(model_of(SelfTimedReason, s) for s in other),
    )
