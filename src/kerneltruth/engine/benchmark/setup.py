"""Hold what benchmarks share.

Benchmarks on one case share inputs, and contents with known results; benchmarks of one task share
the processes of its baselines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from kerneltruth.cases.pools import Choice
from kerneltruth.clock.integrity.valid_baselines import NotValid
from kerneltruth.clock.protocol.inputs import BenchInputs
from kerneltruth.clock.protocol.sides import ShownResult, Side, SideError
from kerneltruth.clock.roofline.traffic import output_shapes
from kerneltruth.clock.schedule.background_work import BackgroundWork
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.documents.case import Case
from kerneltruth.documents.timing import GradedCalls
from kerneltruth.documents.verdict import Infra, Passed, Verdict, said_of
from kerneltruth.engine.benchmark.baselines import CANDIDATE, COMPILED
from kerneltruth.errors import lacks_memory
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.expectation_builder import expect_timed
from kerneltruth.oracle.grading import grade, grade_spots, spotwise
from kerneltruth.runner.observation import Observation
from kerneltruth.tasks.spec import Task

# The reason why nothing can be graded.
PYTORCH_TOO = "PyTorch's own result is wrong by the same measure"


@dataclass(slots=True, kw_only=True)
class TimingSetup:
    """What benchmarks on one case share.

    Attributes:
        device: where references are computed.
        drawn: contents whose results the judge computes.
        failed: why baselines are out, by name; `not_valid` holds the invalid ones.
        expected: what calls on drawn contents must give, or why that cannot be had.
        background: what pauses while batches run.
    """

    task: Task
    case: Case
    inputs: BenchInputs
    device: str
    drawn: list[dict[str, Choice]]
    sides: list[Side] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    not_valid: set[str] = field(default_factory=set)
    expected: list[Expectation | str] = field(default_factory=list)
    background: BackgroundWork = field(default_factory=BackgroundWork)

    def known(self) -> list[dict[str, Choice]]:
        """Return contents with known results, computed at the first call."""
        if not self.expected:
            self.expected = [self._expectation(choices) for choices in self.drawn]
        return [
            choices
            for choices, expected in zip(self.drawn, self.expected, strict=True)
            if isinstance(expected, Expectation)
        ]

    @property
    def lacked_memory(self) -> bool:
        """Return whether expected results are missing because others held the device's memory."""
        return any(isinstance(why, str) and lacks_memory(why) for why in self.expected)

    def compute_references(self) -> None:
        """Compute the expected results; retry later what lacks memory while others are busy."""
        self.known()
        if any(isinstance(expected, str) for expected in self.expected):
            self.expected.clear()

    @property
    def baselines(self) -> list[Side]:
        """Return the baselines that a candidate is timed against."""
        return [side for side in self.sides if side.name != CANDIDATE]

    def itself(self) -> Side:
        """Eager PyTorch as the candidate.

        Raises:
            SideError: it could not be prepared.
        """
        for side in self.sides:
            if side.name == CANDIDATE:
                return side
        seen = Observation(ended="lost", message=self.failed.get(CANDIDATE, "there is none"))
        raise SideError(CANDIDATE, seen)

    def elements(self) -> tuple[int, ...]:
        """Return how many elements each output has, or () if they cannot be graded one by one."""
        expected = [e for e in self.expected if isinstance(e, Expectation)]
        if not expected or not all(spotwise(self.task, e) for e in expected):
            return ()
        shapes = {tuple(want.shape for want in e.outputs) for e in expected}
        # Results selected by value have another shape in each call.
        fixed = self.task.foreign or output_shapes(self.task, self.case) is not None
        return tuple(map(math.prod, shapes.pop())) if fixed and len(shapes) == 1 else ()

    def _expectation(self, choices: dict[str, Choice]) -> Expectation | str:
        with self.background.work():
            inputs = self.inputs.at(self.task, self.case, choices)
            try:
                return expect_timed(self.task, self.case, inputs, device=self.device)
            except Exception as error:
                return f"{type(error).__name__}: {error}".splitlines()[0]

    def leave_out(self, error: SideError) -> None:
        """Drop a baseline that fails; this says nothing about any candidate."""
        self.failed[error.name] = str(error)
        if isinstance(error, NotValid):
            self.not_valid.add(error.name)
        self.sides = [side for side in self.sides if side.name != error.name]

    def graded(self, benchmark: InterleavedBenchmark) -> GradedCalls:
        """Grade a benchmark's shown results."""
        wrong: list[str] = []
        unknown: list[str] = []
        for where, verdict in self._verdicts(benchmark):
            if isinstance(verdict, Infra):
                unknown.append(verdict.reason)
            else:
                wrong += _wrong(verdict, where)
        if not benchmark.shown:
            unknown += [e for e in self.expected if isinstance(e, str)]
        calls = len(benchmark.shown) + sum(len(s.at) for s in benchmark.spot_checks)
        if wrong and self._pytorch_is_wrong(benchmark):
            calls, wrong, unknown = 0, [], [f"{PYTORCH_TOO}: {wrong[0]}"]
        why = unknown[0] if unknown else None
        return GradedCalls(calls=calls, wrong=tuple(wrong), not_graded=why)

    def _pytorch_is_wrong(self, benchmark: InterleavedBenchmark) -> bool:
        """Return whether eager PyTorch's own results fail by the same measure."""
        there = [side for side in benchmark.sides[1:] if side.name in COMPILED and side.buffers]
        try:
            shown = [each for side in there[:1] for each in benchmark.show_known(side)]
        except SideError:
            return False
        return any(_wrong(self._verdict_of(each)) for each in shown)

    def _verdict_of(self, shown: ShownResult) -> Verdict:
        return self._judged(partial(grade, self.task, self._expected(shown.at), shown.seen))

    def _verdicts(self, benchmark: InterleavedBenchmark) -> Iterator[tuple[str, Verdict]]:
        """Return the verdict on each result, with words on where it is from."""
        for shown in benchmark.shown:
            yield "", self._verdict_of(shown)
        for spot_checks in benchmark.spot_checks:
            expected = [self._expected(at) for at in spot_checks.at]
            graded = partial(grade_spots, self.task, expected, spot_checks.spots, spot_checks.seen)
            yield f"samples of {len(expected)} calls: ", self._judged(graded)

    def _judged(self, graded: Callable[..., Verdict]) -> Verdict:
        try:
            return graded()
        except Exception as error:
            # Out of memory, or a mistake in a task: a candidate's fault is a verdict.
            return Infra(reason=f"{type(error).__name__}: {error}".splitlines()[0])

    def _expected(self, at: Mapping[str, Choice]) -> Expectation:
        expectation = self.expected[self.drawn.index(dict(at))]
        assert isinstance(expectation, Expectation)
        return expectation


def _wrong(verdict: Verdict, where: str = "") -> list[str]:
    if isinstance(verdict, Passed):
        return []
    return [f"{verdict.word}: {where}{said_of(verdict)}"[:300]]
