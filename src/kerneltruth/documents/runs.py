"""The JSON of `run`, `audit` and `compare`."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from kerneltruth.documents.case import Case
from kerneltruth.documents.model import Model, Number
from kerneltruth.documents.records import KernelFact, SecondRound, Status, Suspicion
from kerneltruth.documents.verdict import VerdictWord


class RightCount(Model, frozen=True, kw_only=True):
    """How many attempts there are, and how many of them are right."""

    attempts: int
    right: int = field(name="pass")


class RunCandidate(Model, frozen=True, kw_only=True):
    """One candidate of a run; `same_as` names the one whose source it repeats.

    `obligation` is the first of those that decide which it breaks or refuses.
    `own_time` is the share of the device's time that its own kernels took; null where not known.
    `second_round` is of one that passed and was judged again; `suspicions` may be why.
    """

    name: str
    task: str
    verdict: VerdictWord
    kind: str | None
    finding: str | None
    reason: str
    stages: dict[str, str]
    torch_only: bool
    same_as: str | None
    profile: dict[str, Status] = field(default_factory=dict)
    score: Number | None = None
    hazards: tuple[str, ...] = ()
    obligation: str | None = None
    own_time: Number | None = None
    second_round: SecondRound | None = None
    suspicions: tuple[Suspicion, ...] = ()


class ObligationCounts(Model, frozen=True, kw_only=True):
    """How many candidates ended an obligation in each status."""

    held: int = 0
    broken: int = 0
    refused: int = 0
    not_tried: int = 0
    not_applicable: int = 0


class NoValidBaseline(Model, frozen=True, kw_only=True):
    """An invalid baseline, and how many candidates have no ratio for it."""

    task: str
    shape: str
    baseline: str
    why: str
    candidates: int


class NotRead(Model, frozen=True, kw_only=True):
    """An item that is not a submission."""

    where: str
    why: str


class RunDocument(Model, frozen=True, kw_only=True):
    """`run --json`."""

    schema: Literal[2] = 2
    suite: str
    contract: str
    seed: int
    attempts: int
    stages: dict[str, dict[str, int]]
    by_category: dict[str, RightCount]
    torch_only: RightCount
    no_valid_baseline: tuple[NoValidBaseline, ...]
    repeated_sources: int
    infra: int
    candidates: tuple[RunCandidate, ...]
    broken: tuple[NotRead, ...]
    seconds: Number
    attempts_per_hour: Number | None
    device: str
    run: str
    obligations: dict[str, ObligationCounts] = field(default_factory=dict)


class AuditObligation(Model, frozen=True, kw_only=True):
    """The status of one obligation; `finding` shows the case that breaks it."""

    status: Status
    decisive: bool
    cases: int
    reason: str | None
    finding: str | None
    untried: dict[str, str]


class AuditKernel(Model, frozen=True, kw_only=True):
    """One kernel of the corpus, with the judge's verdict and those of the peers' checks.

    A bug is `caught` if it breaks the `obligation` that it was planted against, or refuses it.
    `peer_checks` has what each peer's check says, and `illusion_for` those that pass a bug.
    """

    name: str
    task: str
    role: Literal["control", "bug"]
    fault: str | None
    obligation: str | None
    caught: bool
    contract: str
    passed: bool
    verdict: VerdictWord
    kind: str | None
    cases: int
    failed: int
    minimal: Case | None
    minimal_summary: str | None
    minimal_shown: str
    explanation: str
    finding: str | None
    hazards: tuple[str, ...]
    profile: dict[str, AuditObligation]
    score: Number | None
    torch_only: bool
    kernel: KernelFact | None
    peer_checks: dict[str, Literal["pass", "fail", "error"]]
    peer_check_reasons: dict[str, str]
    illusion_for: tuple[str, ...]
    declined: int
    unrefereeable: int
    void: int
    skipped: dict[str, int]
    compiled: int
    worst_ratio: Number | None
    seconds: Number


class AuditSummary(Model, frozen=True, kw_only=True):
    """Counts of an audit; `illusions` has the bugs that each peer check passes."""

    controls: int
    controls_clean: int
    bugs: int
    bugs_caught: int
    good: bool
    illusions: dict[str, int]
    cases: int
    control_cases: int
    seconds: Number
    cases_per_second: Number | None
    device: str


class AuditDocument(Model, frozen=True, kw_only=True):
    """`audit --json`."""

    schema: Literal[2] = 2
    kernels: tuple[AuditKernel, ...]
    summary: AuditSummary
    notes: dict[str, int]
    run: str


class ComparedRun(Model, frozen=True, kw_only=True):
    """A run that is compared; `contracts` decided in it, none where an earlier version judged."""

    path: str
    device: str
    attempts: int
    contracts: tuple[str, ...] = ()


class DifferingKernel(Model, frozen=True, kw_only=True):
    """A kernel whose verdict differs, with the verdict of each run."""

    name: str
    verdicts: tuple[str, ...]


class MissingKernel(Model, frozen=True, kw_only=True):
    """A kernel that some runs lack."""

    name: str
    absent: tuple[str, ...]


class Spread(Model, frozen=True, kw_only=True):
    """A distribution of `count` numbers; the rest is null where there are none."""

    count: int
    least: Number | None
    p10: Number | None
    p25: Number | None
    median: Number | None
    p75: Number | None
    p90: Number | None
    most: Number | None


class SpeedupInterval(Model, frozen=True, kw_only=True):
    """A speedup and its interval."""

    ratio: Number
    low: Number
    high: Number


class ComparedKernel(Model, frozen=True, kw_only=True):
    """A kernel that two or more runs have timed on a shape that they share.

    Attributes:
        shapes: how many shapes the speedups are of.
        speedups: by run, in their order; null where a run did not time it.
        spread: the largest speedup over the smallest.
        differs: whether some two runs exclude each other: their intervals do not meet.
        flips: whether it is faster than the baseline in one run and slower in another.
    """

    name: str
    shapes: int
    speedups: tuple[SpeedupInterval | None, ...]
    spread: Number
    differs: bool
    flips: bool


class ComparedSpeed(Model, frozen=True, kw_only=True):
    """Differences between runs against one baseline.

    Attributes:
        timed: kernels that each run has timed; two or more share `shared` of them, of which all
            else is.
        differ: how many differ beyond their intervals.
        flips: how many are faster here and slower there.
        within: how many spreads are at most so large, by share.
        spread: the distribution of spreads; `speedups` that of speedups in each run.
        kernels: the largest spread first.
    """

    timed: tuple[int, ...]
    shared: int
    differ: int
    flips: int
    within: dict[str, int]
    spread: Spread
    speedups: tuple[Spread, ...]
    kernels: tuple[ComparedKernel, ...]


class ChangedObligation(Model, frozen=True, kw_only=True):
    """An obligation of a kernel that ends in another way in another run.

    Attributes:
        obligation: with its part, such as `dtypes.float16`.
        statuses: by run; null where the run's task has no such part.
    """

    name: str
    obligation: str
    statuses: tuple[Status | None, ...]


EditEffect = Literal["fixed", "broken", "still right", "still wrong"]


class EditedKernel(Model, frozen=True, kw_only=True):
    """A kernel whose source is not the same in all runs.

    Attributes:
        files: by run.
        verdicts: by run, with the kind of a failure.
        became: what the last run says beside the first; right means a pass.
    """

    name: str
    files: tuple[str, ...]
    verdicts: tuple[str, ...]
    became: EditEffect


class CompareDocument(Model, frozen=True, kw_only=True):
    """`compare --json`.

    Attributes:
        obligations: those that changed, of kernels that have a profile in every run.
        no_profile: kernels that have none in some run, which an earlier version judged.
        edited: kernels that are in all runs, with another source in some.
        torch_only: kernels that have no kernel of their own in some run, only calls of PyTorch.
    """

    schema: Literal[1] = 1
    runs: tuple[ComparedRun, ...]
    kernels: int
    same: int
    same_kind: int
    differing: tuple[DifferingKernel, ...]
    missing: tuple[MissingKernel, ...]
    other_source: tuple[str, ...]
    speed: dict[str, ComparedSpeed]
    obligations: tuple[ChangedObligation, ...] = ()
    no_profile: int = 0
    edited: tuple[EditedKernel, ...] = ()
    torch_only: tuple[str, ...] = ()
