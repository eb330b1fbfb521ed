"""What analysis knows of an attempt: its labels, how it ended, and its timings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kerneltruth.oracle.attempt import DtypeCount

# Outcomes that say nothing of the candidate: its machine, the suite or this run stood in the way.
NOT_JUDGED = frozenset({"infra", "unsupported_here", "unrefereeable"})
NOT_RUN = "not_run"
PASSED = "pass"
TIMED = "timed"

Standing = Literal["faster", "tie", "slower"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A baseline's time over the candidate's: above 1 the candidate is faster.

    Attributes:
        us: the baseline's time.
        low: of the 95% interval; None where the run holds none.
        outcome: what the clock made of it, as the interval and the noise floor allow.
    """

    us: float | None
    ratio: float
    low: float | None
    high: float | None
    outcome: Standing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedShape:
    """A candidate timed on one shape.

    Attributes:
        case: in words.
        efficiency: the least time that this device needs, over the candidate's.
        bound_by: what that least time is for: memory, compute, launch or latency.
        flags: what the clock had to say of the measurement.
    """

    case: str
    dtype: str | None
    candidate_us: float
    low: float | None
    high: float | None
    baselines: Mapping[str, Ratio]
    efficiency: float | None = None
    bound_by: str | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The perf stage of an attempt that was timed; suspect shapes are not among its shapes.

    Attributes:
        noise_floor: the relative difference below which a kernel differs from itself.
    """

    shapes: tuple[TimedShape, ...]
    noise_floor: float | None = None
    compile_s: float | None = None

    def speedup(self, baseline: str = "eager") -> float | None:
        """The geometric mean of the ratios over the shapes that have that baseline."""
        logs = [math.log(s.baselines[baseline].ratio) for s in self.of(baseline)]
        return math.exp(math.fsum(logs) / len(logs)) if logs else None

    def interval(self, baseline: str = "eager") -> tuple[float, float] | None:
        """The interval of the speedup, where every shape has one.

        Measurements of several shapes are independent of each other: their widths, on the scale of
        logarithms, add up in squares.
        """
        shapes = self.of(baseline)
        found = [(s.baselines[baseline].low, s.baselines[baseline].high) for s in shapes]
        if not found or any(low is None or high is None or low <= 0 for low, high in found):
            return None
        centre = math.log(self.speedup(baseline) or 1.0)
        below = above = 0.0
        for shape in shapes:
            ratio = shape.baselines[baseline]
            assert ratio.low is not None
            assert ratio.high is not None
            below += math.log(ratio.ratio / ratio.low) ** 2
            above += math.log(ratio.high / ratio.ratio) ** 2
        count = len(shapes)
        return (
            math.exp(centre - math.sqrt(below) / count),
            math.exp(centre + math.sqrt(above) / count),
        )

    def standing(self, baseline: str = "eager") -> Standing | None:
        """Faster or slower where the interval clears 1 and the noise floor, else a tie."""
        ends = self.interval(baseline)
        if ends is None:
            return None
        room = 1.0 + (self.noise_floor or 0.0)
        return "faster" if ends[0] > room else "slower" if ends[1] < 1 / room else "tie"

    def of(self, baseline: str) -> tuple[TimedShape, ...]:
        """The shapes that were timed against that baseline."""
        return tuple(s for s in self.shapes if baseline in s.baselines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One attempt of a run, as its result line tells it.

    Attributes:
        run: which of the runs read, from 0.
        call: outcome of the stage; likewise `exe` and `perf`.
        verdict: the judge's word.
        kind: of a failure.
        detail: what the verdict says of its reason, in one line.
        dtypes: counts by dtype, as far as the attempt went.
        finding: file name within the run's `findings`.
        checks: what the peers' checks say of it: pass, fail or error; a verdict that came with the
            submission goes by `published:` and the check's name.
        same_as: key of the attempt whose source this one repeats, and whose outcome it shares.
    """

    run: int
    key: str
    task: str
    category: str | None
    origin: str
    sha256: str
    language: str | None
    method: str | None
    model: str | None
    sample: int | None
    round: int | None
    call: str
    exe: str
    perf: str
    verdict: str
    kind: str | None = None
    detail: str = ""
    cases: int = 0
    failed: int = 0
    dtypes: Mapping[str, DtypeCount] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    finding: str | None = None
    checks: Mapping[str, str] = field(default_factory=dict)
    timing: Timing | None = None
    same_as: str | None = None

    @property
    def suite(self) -> str:
        """The suite of its task."""
        suite, slash, _ = self.task.partition("/")
        return suite if slash else "core"

    @property
    def called(self) -> bool:
        """Whether the candidate loads and returns from a call."""
        return self.call == PASSED

    @property
    def correct(self) -> bool:
        """Whether the judge found nothing wrong."""
        return self.exe == PASSED

    @property
    def timed(self) -> bool:
        """Whether there is a time that the clock stands by."""
        return self.timing is not None and bool(self.timing.shapes)

    @property
    def judged(self) -> bool:
        """Whether the attempt says something of the candidate."""
        return self.verdict not in NOT_JUDGED

    def speedup(self, baseline: str = "eager") -> float | None:
        """How much faster than the baseline a correct candidate is, over its shapes; else None."""
        return self.timing.speedup(baseline) if self.timing is not None and self.correct else None
