"""The judge's review of an answer, as feedback for the next round."""

from __future__ import annotations

from dataclasses import dataclass, field

from kerneltruth.documents.model import Number
from kerneltruth.documents.timing import CandidateTimes

RIGHT = "pass"
# Verdicts that say nothing about the kernel: no feedback for the model.
NO_VERDICT = ("infra", "unrefereeable", "unsupported_here")
_STANDING = {"compile_error": 0, "crash": 1, "timeout": 1, "runtime_error": 1, "fail": 2, RIGHT: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeTiming:
    """The speed of a right kernel at one shape, beside PyTorch.

    Attributes:
        ratio: PyTorch's time over the kernel's; above 1 the kernel is faster.
    """

    shape: str
    candidate_us: Number
    eager_us: Number
    ratio: Number
    low: Number
    high: Number
    bound_by: str | None = None
    efficiency: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A verdict on one answer.

    Attributes:
        stage: the last stage reached: `call`, `exe` or `perf`.
        explanation: where and how the output is wrong.
        broken: the obligations that it breaks or refuses, a line each, the worst first.
        counterexample: the smallest failing input, in words; empty if there is none.
        passed: cases that it got right before it failed.
        timings: by shape, small to large; empty if nothing was timed.
        facts: what was measured of a right kernel beside its times, a line each.
        seconds: that judging and timing took; 0 where another answer of the same source took them.
    """

    outcome: str
    stage: str
    kind: str | None = None
    detail: str = ""
    explanation: str = ""
    broken: tuple[str, ...] = ()
    counterexample: str = ""
    passed: int = 0
    cases: int = 0
    timings: tuple[ShapeTiming, ...] = field(default_factory=tuple)
    facts: tuple[str, ...] = ()
    seconds: Number = 0.0

    @property
    def is_right(self) -> bool:
        """Return whether no case showed it wrong."""
        return self.outcome == RIGHT

    @property
    def says_something(self) -> bool:
        """Return whether it holds feedback for the next round."""
        return self.outcome not in NO_VERDICT and (not self.is_right or bool(self.timings))

    @property
    def rank(self) -> tuple[int, int, float]:
        """Sort key: right before wrong, then the later stage, then the faster kernel."""
        logs = 1.0
        for timing in self.timings:
            logs *= timing.ratio
        speed = logs ** (1 / len(self.timings)) if self.timings else 0.0
        return _STANDING.get(self.outcome, -1), self.passed, speed


def timings_of(perf: CandidateTimes | None) -> tuple[ShapeTiming, ...]:
    """Return the shapes of a perf stage that were timed against eager PyTorch and graded."""
    if perf is None or perf.outcome != "timed":
        return ()
    return tuple(
        ShapeTiming(
            shape=shape.summary,
            candidate_us=shape.candidate_us,
            eager_us=eager.us,
            ratio=eager.ratio,
            low=eager.low,
            high=eager.high,
            bound_by=shape.bound_by,
            efficiency=shape.efficiency,
        )
        for shape in perf.shapes or ()
        if not shape.graded.not_graded and (eager := shape.baselines.get("eager")) is not None
    )
