"""An attempt as analysis sees it: its labels, its verdict, and its timings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from kerneltruth.clock.statistics.summary import Interval, Outcome, outcome
from kerneltruth.documents.records import DtypeCount, Status
from kerneltruth.documents.verdict import NOT_JUDGED

# Verdicts due to the machine, the suite or this run, not to the candidate.
# The language of a source with no kernel of its own.
TORCH_ONLY = "torch-only"
# A stage that an attempt did not come to, and one that its run never had.
NOT_RUN = "not_run"
NOT_TRIED = "not_tried"
PASSED = "pass"
TIMED = "timed"
# Right when judged, and wrong while it was timed: such an attempt failed, with this kind.
WRONG = "wrong"
WHEN_TIMED = "when_timed"


class Obliged(NamedTuple):
    """How an obligation ended, by what the task's prompt promises and the contract asks.

    Attributes:
        cases: how many held.
    """

    status: Status
    promised: bool = True
    decisive: bool = True
    cases: int = 0


class Spent(NamedTuple):
    """What a model's answer took; None where unknown."""

    tokens: int | None
    seconds: float | None
    cost: float | None
    judge_seconds: float | None = None


# Tuples, since a large study has half a million of these, and they are made in half the time.
class Ratio(NamedTuple):
    """A baseline's time over the candidate's: above 1 the candidate is faster.

    Attributes:
        us: the baseline's time.
        low: of the 95% interval, which the noise floor has widened; None where the run holds none.
        outcome: the clock's word for it.
    """

    us: float | None
    ratio: float
    low: float | None
    high: float | None
    outcome: Outcome | None


class Rates(NamedTuple):
    """How fast a task's bytes move and its operations are done in a candidate's time.

    Attributes:
        memory_share: of the device's measured copy rate; likewise `compute_share`, of the fastest
            rate in a format that the task admits. None where there is no such rate.
    """

    bytes_per_s: float | None
    flops_per_s: float | None
    memory_share: float | None
    compute_share: float | None


class TimedShape(NamedTuple):
    """A candidate timed on one shape.

    Attributes:
        efficiency: the least time that this device needs, over the candidate's.
        bound_by: the reason for that least time: memory, compute, launch or latency.
        flags: the clock's remarks on the measurement.
        rates: None if the device was not measured.
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
    rates: Rates | None = None

    @property
    def least_compute_share(self) -> float | None:
        """`Rates.compute_share`, at the upper end of the time's interval."""
        share = None if self.rates is None else self.rates.compute_share
        return None if share is None or not self.high else share * self.candidate_us / self.high


class Against(NamedTuple):
    """A candidate against one baseline, over all shapes that were timed against it.

    Attributes:
        speedup: the geometric mean of the ratios.
        low: of its interval, where every shape has one. Shapes are measured independently of each
            other: on the scale of logarithms the widths of their intervals add up in squares.
        outcome: faster or slower where the interval, which holds the noise floor already, clears
            1 by the clock's minimum effect; else a tie.
    """

    speedup: float
    low: float | None
    high: float | None
    outcome: Outcome | None


UNKNOWN_SPENT = Spent(None, None, None)


class Timing(Struct, frozen=True, kw_only=True, gc=False):
    """The perf stage of a timed attempt, without suspect or ungraded shapes.

    Make one with `timing`.

    Attributes:
        efficiency: the geometric mean over the shapes that have one.
        noise_floor: the relative difference below which a kernel differs from itself.
        rates: of these shapes, each the geometric mean of those that have it.
        own_time: the share of the device's time that its own kernels took, where it is known.
        uses: what its compiled kernels use: `tensor_cores`, and words of `BinaryRecord.uses`.
    """

    shapes: tuple[TimedShape, ...]
    against: Mapping[str, Against]
    efficiency: float | None = None
    rates: Rates | None = None
    noise_floor: float | None = None
    compile_s: float | None = None
    own_time: float | None = None
    uses: frozenset[str] = frozenset()


def timing(
    shapes: Sequence[TimedShape],
    *,
    noise_floor: float | None = None,
    compile_s: float | None = None,
    own_time: float | None = None,
    uses: frozenset[str] = frozenset(),
) -> Timing:
    """Make the timings of an attempt, with its speedup over each baseline."""
    ratios: dict[str, list[Ratio]] = {}
    for shape in shapes:
        for name, ratio in shape.baselines.items():
            ratios.setdefault(name, []).append(ratio)
    rates = [s.rates for s in shapes if s.rates is not None]
    return Timing(
        shapes=tuple(shapes),
        against={name: _against(found) for name, found in ratios.items()},
        efficiency=_mean([s.efficiency for s in shapes]),
        rates=Rates(*map(_mean, zip(*rates, strict=True))) if rates else None,
        noise_floor=noise_floor,
        compile_s=compile_s,
        own_time=own_time,
        uses=uses,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the geometric mean of the values that are above 0; None without any."""
    logs = [math.log(v) for v in values if v]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def _against(ratios: Sequence[Ratio]) -> Against:
    count = len(ratios)
    logs = [math.log(r.ratio) for r in ratios]
    centre = math.fsum(logs) / count
    below = above = 0.0
    for r, log in zip(ratios, logs, strict=True):
        if not r.low or not r.high:
            return Against(math.exp(centre), None, None, None)
        below += (log - math.log(r.low)) ** 2
        above += (math.log(r.high) - log) ** 2
    low = math.exp(centre - math.sqrt(below) / count)
    high = math.exp(centre + math.sqrt(above) / count)
    interval = Interval(estimate=math.exp(centre), low=low, high=high)
    return Against(interval.estimate, low, high, outcome(interval))


class Result(Struct, frozen=True, kw_only=True, gc=False):
    """One attempt of a run, read from its result line.

    Attributes:
        run: which of the runs read, from 0.
        call: outcome of the stage; likewise `exe` and `perf`. A kernel with a wrong result while it
            was timed fails in `exe`, too.
        quantization: the rule of a quantized task that it departs from, where one is proven.
        detail: the reason of the verdict, in one line.
        dtypes: counts by dtype, as far as the attempt went.
        finding: file name within the run's `findings`.
        checks: results of the peer checks: pass, fail or error; a verdict that came with the
            submission goes by `published:` and the check's name.
        same_as: key of the attempt whose source this one repeats, and whose verdict it shares.
        profile: how each obligation ended, by name; empty where no case could be tried.
        contract: whose obligations decided; empty where an earlier version judged.
        score: from 0 to 1, by the profile; None where an earlier version judged.
        own: the share of launches that are of its own kernels, of `launches` in all; None where
            they are not seen.
        role: control or bug, of a kernel of the built-in corpus that `audit` judged.
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
    quantization: str | None = None
    detail: str = ""
    cases: int = 0
    failed: int = 0
    dtypes: Mapping[str, DtypeCount] = {}
    tags: tuple[str, ...] = ()
    finding: str | None = None
    checks: Mapping[str, str] = {}
    timing: Timing | None = None
    same_as: str | None = None
    profile: Mapping[str, Obliged] = {}
    contract: str = ""
    score: float | None = None
    own: float | None = None
    launches: int | None = None
    role: str | None = None
    spent: Spent = UNKNOWN_SPENT

    @property
    def verdict_in_words(self) -> str:
        """The verdict with the kind of a fault, as one line."""
        return f"{self.verdict} {self.kind or ''}".strip()

    @property
    def suite(self) -> str:
        """The suite of its task."""
        suite, slash, _ = self.task.partition("/")
        return suite if slash else "core"

    @property
    def torch_only(self) -> bool:
        """Whether it has no kernel of its own."""
        return self.language == TORCH_ONLY

    @property
    def has_profile(self) -> bool:
        """Whether the version that judged it made profiles, be it an empty one."""
        return bool(self.contract or self.profile)

    @property
    def loaded(self) -> bool:
        """Whether its source loads, so that a call began."""
        return self.called or (self.judged and self.cases > 0)

    @property
    def compiled(self) -> bool:
        """Whether it loads, and its kernels compile as far as the call stage came."""
        return self.loaded and self.call != "compile_error"

    @property
    def called(self) -> bool:
        """Whether the candidate loads and returns from a call."""
        return self.call == PASSED

    @property
    def correct(self) -> bool:
        """Whether the judge found nothing wrong, in the exe stage and while it was timed."""
        return self.exe == PASSED

    @property
    def timed(self) -> bool:
        """Whether there is a time that is not suspect."""
        return self.timing is not None and bool(self.timing.shapes)

    @property
    def own_time(self) -> float | None:
        """The share of the device's time that its own kernels took, where it is known."""
        return None if self.timing is None else self.timing.own_time

    @property
    def judged(self) -> bool:
        """Whether the attempt tells if the candidate is right."""
        return self.verdict not in NOT_JUDGED and self.exe != NOT_TRIED

    def tried(self, stage: str) -> bool:
        """Whether the run had the stage, so that the attempt passed it or did not."""
        return bool(getattr(self, stage) != NOT_TRIED)

    def against(self, baseline: str = "eager") -> Against | None:
        """Return a right candidate's speedup over a baseline; None if it has none.

        A wrong kernel's speed does not count.
        """
        return self.timing.against.get(baseline) if self.timing and self.correct else None

    def speedup(self, baseline: str = "eager") -> float | None:
        """Return a right candidate's speedup as a number; None if it has none."""
        found = self.against(baseline)
        return None if found is None else found.speedup
