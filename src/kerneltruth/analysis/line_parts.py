"""The parts of a result line that analysis reads, of this and of earlier versions."""

from __future__ import annotations

import msgspec

from kerneltruth.documents.records import Status

SUSPECT = "timing_suspect"

# A value that counts as unknown if it is of another type than expected.
Leaf = None | bool | int | float | str
Leaves = tuple[Leaf, ...]


class PartOfLine(msgspec.Struct, frozen=True, gc=False):
    """The part of an object that analysis reads; what else it holds is skipped unseen.

    Versions differ in what they write: whatever may be absent may be null.
    """


class SaidPart(PartOfLine, frozen=True):
    """A verdict, or a stage."""

    verdict: Leaf = None
    outcome: Leaf = None
    kind: Leaf = None
    detail: Leaf = None
    reason: Leaf = None
    error: Leaf = None


class RulePart(PartOfLine, frozen=True):
    """The rule of quantization that a wrong kernel departs from."""

    rule: Leaf = None


class CasePart(PartOfLine, frozen=True):
    """A case: analysis counts by its dtype."""

    dtype: Leaf = None


class KernelPart(PartOfLine, frozen=True):
    """The share of own kernels: of launches in an attempt, of time in a perf stage."""

    own: Leaf = None
    launches: Leaf = None


class GradedPart(PartOfLine, frozen=True):
    """Compared results of timed calls."""

    wrong: Leaves | None = None
    not_graded: Leaf = None


class RatioPart(PartOfLine, frozen=True):
    """A baseline on a shape; `ratio` is its time over the candidate's."""

    us: Leaf = None
    ratio: Leaf = None
    low: Leaf = None
    high: Leaf = None
    outcome: Leaf = None


class AdvicePart(PartOfLine, frozen=True):
    """How fast a shape's bytes move and its operations are done, as in `Rates`."""

    bytes_per_s: Leaf = None
    flops_per_s: Leaf = None
    memory_share: Leaf = None
    compute_share: Leaf = None


class BinaryPart(PartOfLine, frozen=True):
    """A compiled kernel."""

    uses: Leaves | None = None
    tensor_cores: Leaf = None


class KernelsPart(PartOfLine, frozen=True):
    """The compiled kernels of a shape."""

    candidate: tuple[BinaryPart, ...] | None = None


class ShapePart(PartOfLine, frozen=True):
    """A candidate timed on a shape."""

    case: CasePart | None = None
    summary: Leaf = None
    candidate_us: Leaf = None
    candidate_low: Leaf = None
    candidate_high: Leaf = None
    # A baseline that could not be timed is null.
    baselines: dict[str, RatioPart | None] | None = None
    efficiency: Leaf = None
    bound_by: Leaf = None
    flags: Leaves | None = None
    advice: AdvicePart | None = None
    graded: GradedPart | None = None
    kernels: KernelsPart | None = None

    @property
    def is_sure(self) -> bool:
        """Whether its times are neither suspect nor of ungraded results."""
        not_graded = self.graded is not None and self.graded.not_graded
        return SUSPECT not in (self.flags or ()) and not not_graded


class PerfPart(SaidPart, frozen=True):
    """The perf stage; that of earlier runs has one shape, without intervals."""

    shapes: tuple[ShapePart, ...] | None = None
    noise_floor: Leaf = None
    compile_s: Leaf = None
    kernel: KernelPart | None = None
    case: Leaf = None
    candidate_us: Leaf = None
    eager_us: Leaf = None
    times_eager: Leaf = None


class StagesPart(PartOfLine, frozen=True):
    """The stages that a run has."""

    call: SaidPart | None = None
    exe: SaidPart | None = None
    perf: PerfPart | None = None


class CountedPart(PartOfLine, frozen=True):
    """Counts of a dtype."""

    cases: int
    returned: int
    failed: int


class EndedPart(PartOfLine, frozen=True):
    """How an obligation ended."""

    status: Status
    promised: Leaf = None
    decisive: Leaf = None
    cases: Leaf = None


class CandidatePart(PartOfLine, frozen=True):
    """A candidate."""

    sha256: Leaf = None
    language: Leaf = None


class FailurePart(PartOfLine, frozen=True):
    """The first failure of an attempt."""

    case: CasePart | None = None
    verdict: SaidPart | None = None


class AttemptPart(PartOfLine, frozen=True):
    """An attempt; lines that repeat a source have none."""

    task: Leaf = None
    candidate: CandidatePart | None = None
    verdict: SaidPart | None = None
    cases: Leaf = None
    failed: Leaf = None
    failure: FailurePart | None = None
    dtypes: dict[str, CountedPart] | None = None
    contract: Leaf = None
    profile: dict[str, EndedPart] | None = None
    score: Leaf = None
    quantization: RulePart | None = None
    kernel: KernelPart | None = None
    torch_only: Leaf = None


class LabelsPart(PartOfLine, frozen=True):
    """Where a candidate comes from."""

    method: Leaf = None
    model: Leaf = None
    sample: Leaf = None
    round: Leaf = None


class PublishedPart(PartOfLine, frozen=True):
    """The verdict of a peer that came with the source."""

    check: Leaf = None
    correct: Leaf = None


class SpentPart(PartOfLine, frozen=True):
    """What a model's answer took."""

    prompt_tokens: Leaf = None
    completion_tokens: Leaf = None
    seconds: Leaf = None
    cost: Leaf = None
    judge_seconds: Leaf = None


class LinePart(PartOfLine, frozen=True):
    """A line of `results.jsonl`; `baselines` are the peer checks of earlier versions."""

    key: str
    name: Leaf = None
    task: Leaf = None
    category: Leaf = None
    origin: Leaf = None
    sha256: Leaf = None
    attempt: AttemptPart | None = None
    finding: Leaf = None
    same_as: Leaf = None
    labels: LabelsPart | None = None
    peer: PublishedPart | None = None
    spent: SpentPart | None = None
    stages: StagesPart | None = None
    tags: Leaves | None = None
    peer_checks: dict[str, SaidPart | None] | None = None
    baselines: dict[str, SaidPart | None] | None = None
    role: Leaf = None
