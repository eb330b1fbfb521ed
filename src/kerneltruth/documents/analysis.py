"""What `analyze` and `report` print as JSON: tables of shares, speedups, deviance and rounds.

The fields of a row say what the table's own row says, which `analysis` documents.
"""

from __future__ import annotations

from typing import Literal, cast

from msgspec import UNSET, UnsetType, field

from kerneltruth.documents.model import Model, Number

ModelName = Literal["category", "method", "category + method", "category * method"]
Label = str | UnsetType | None


class RateRecord(Model, frozen=True, kw_only=True):
    """A share with its counts and interval; null where the denominator is 0."""

    numerator: int
    denominator: int
    rate: Number | None
    low: Number | None
    high: Number | None


class EstimateRecord(Model, frozen=True, kw_only=True):
    """A mean over `clusters` of values, and its interval."""

    value: Number | None
    low: Number | None
    high: Number | None
    count: int
    clusters: int


class CorrelationRecord(Model, frozen=True, kw_only=True):
    """Spearman's rank correlation of pairs."""

    value: Number | None
    low: Number | None
    high: Number | None
    pairs: int


class GroupRecord(Model, frozen=True, kw_only=True):
    """A row of a table that is broken down: it has the dimensions of the break-down."""

    category: Label = UNSET
    method: Label = UNSET
    model: Label = UNSET
    suite: Label = UNSET
    task: Label = UNSET
    language: Label = UNSET
    round_label: Label = field(default=UNSET, name="round")
    sample: Label = UNSET
    verdict: Label = UNSET
    dtype: Label = UNSET

    def label(self, dimension: str) -> Label:
        """The row's value of a dimension; UNSET where the table is not broken down by it."""
        return cast(Label, getattr(self, "round_label" if dimension == "round" else dimension))


class MethodRecord(Model, frozen=True, kw_only=True):
    """A row of a table by method."""

    method: str | None
    model: str | None

    def label(self, dimension: str) -> Label:
        """The row's value of a dimension."""
        return cast(Label, getattr(self, dimension))


class AnalyzedRun(Model, frozen=True, kw_only=True):
    """A run that was read; `ended` is null where it was stopped or goes on."""

    path: str
    command: str
    device: str
    version: str
    suite_hash: str
    seed: int
    started: str
    ended: str | None
    attempts: int


class TorchOnlyCount(Model, frozen=True, kw_only=True):
    """Answers without a kernel of their own, and how many of them are right."""

    answers: int
    right: int = field(name="pass")


class StageRates(GroupRecord, frozen=True, kw_only=True):
    """Shares of answers that pass each stage."""

    attempts: int
    tasks: int
    call: RateRecord
    exe: RateRecord
    perf: RateRecord
    not_judged: int
    not_tried: dict[str, int]
    stopped_before: int
    failed: RateRecord | None
    call_most: RateRecord | None
    exe_most: RateRecord | None


class StageRatesBy(Model, frozen=True, kw_only=True):
    """One break-down of rates."""

    by: tuple[str, ...]
    rows: tuple[StageRates, ...]


class RateTables(Model, frozen=True, kw_only=True):
    """All rates."""

    overall: StageRates
    by: tuple[StageRatesBy, ...]


class UnsolvedTasks(GroupRecord, frozen=True, kw_only=True):
    """Tasks that no method solves."""

    unsolved: RateRecord
    partial: int
    tasks: tuple[str, ...]


class UnsolvedTables(Model, frozen=True, kw_only=True):
    """Unsolved tasks, in all and by category."""

    overall: UnsolvedTasks
    by_category: tuple[UnsolvedTasks, ...]


class PassAtK(MethodRecord, frozen=True, kw_only=True):
    """Pass@k of a method."""

    k: int
    value: EstimateRecord
    tasks: int
    short: int
    not_judged: int


class FastShare(GroupRecord, frozen=True, kw_only=True):
    """Answers that are right and more than `p` times as fast as a baseline."""

    baseline: str
    p: Number
    share: RateRecord
    surely: int
    untimed: int


class SpeedupRow(GroupRecord, frozen=True, kw_only=True):
    """Speedups of right answers over a baseline."""

    baseline: str
    correct: int
    timed: int
    mean: EstimateRecord
    median: Number | None
    slower: RateRecord
    surely_slower: int
    surely_faster: int
    ties: int


class EfficiencyRow(GroupRecord, frozen=True, kw_only=True):
    """How near right answers are to what the device can do."""

    known: int
    mean: EstimateRecord
    median: Number | None
    bound_by: dict[str, int]


class AuditedKernels(Model, frozen=True, kw_only=True):
    """The kernels of an audit."""

    kernels: int
    controls: int
    controls_clean: int
    bugs: int
    bugs_caught: int


class IllusionRates(GroupRecord, frozen=True, kw_only=True):
    """Wrong kernels that one peer check certifies."""

    check: str
    illusions: RateRecord
    of_wrong: RateRecord
    false_alarms: RateRecord
    not_judged: int


class IllusionRatesBy(Model, frozen=True, kw_only=True):
    """One break-down of illusions."""

    by: tuple[str, ...]
    rows: tuple[IllusionRates, ...]


class IllusionRecord(Model, frozen=True, kw_only=True):
    """A wrong kernel, and the checks that certify it."""

    run: str
    key: str
    task: str
    category: str | None
    method: str | None
    model: str | None
    checks: tuple[str, ...]
    verdict: str
    kind: str | None
    detail: str
    finding: str | None


class IllusionTables(Model, frozen=True, kw_only=True):
    """All illusions."""

    attempts: int
    any_check: RateRecord
    overall: tuple[IllusionRates, ...]
    by: tuple[IllusionRatesBy, ...]
    findings: tuple[IllusionRecord, ...]


class DevianceTerm(Model, frozen=True, kw_only=True):
    """What one logistic model explains of the null deviance."""

    model: ModelName
    df: int
    deviance: Number
    explained: Number
    low: Number | None
    high: Number | None
    outside: bool
    per_df: Number
    adjusted: Number | None
    mcfadden: Number
    mcfadden_adjusted: Number
    by_chance: Number | None
    p_permutation: Number | None
    p_likelihood: Number | None
    penalized: Number | None


class AddedTerm(Model, frozen=True, kw_only=True):
    """What one term adds to a model."""

    added: str
    to: str
    df: int
    drop: Number
    p_likelihood: Number
    p_permutation: Number | None


class SeparatedLevel(Model, frozen=True, kw_only=True):
    """A category or method whose answers are all right or all wrong."""

    factor: str
    level: str
    right: int
    answers: int


class ComplexityRecord(Model, frozen=True, kw_only=True):
    """How a measure of the reference goes with failure."""

    proxy: str
    call: CorrelationRecord
    exe: CorrelationRecord


class DevianceTables(Model, frozen=True, kw_only=True):
    """The analysis of deviance, or why there is none; and complexity."""

    unavailable: str | UnsetType = UNSET
    answers: int | UnsetType = UNSET
    right: int | UnsetType = UNSET
    tasks: int | UnsetType = UNSET
    categories: int | UnsetType = UNSET
    methods: int | UnsetType = UNSET
    not_judged: int | UnsetType = UNSET
    null_deviance: Number | UnsetType = UNSET
    terms: tuple[DevianceTerm, ...] | UnsetType = UNSET
    steps: tuple[AddedTerm, ...] | UnsetType = UNSET
    separated: tuple[SeparatedLevel, ...] | UnsetType = UNSET
    permutations: int | UnsetType = UNSET
    resamples: int | UnsetType = UNSET
    notes: tuple[str, ...] | UnsetType = UNSET
    complexity: tuple[ComplexityRecord, ...]


class RoundRates(MethodRecord, frozen=True, kw_only=True):
    """Chains at one round."""

    round: int
    chains: int
    made: int
    not_judged: int
    call: RateRecord
    exe: RateRecord
    kept: RateRecord
    speedup: EstimateRecord
    steady: EstimateRecord


class ChainFates(MethodRecord, frozen=True, kw_only=True):
    """What became of chains."""

    chains: int
    persistent: RateRecord
    rescued: RateRecord
    regained: RateRecord
    lost: RateRecord
    never: RateRecord
    not_judged: RateRecord
    persistent_speedup: EstimateRecord
    rescued_speedup: EstimateRecord


class RoundChanges(MethodRecord, frozen=True, kw_only=True):
    """What one more round does."""

    steps: int
    not_judged: int
    repaired: RateRecord
    regressed: RateRecord
    timed: int
    higher: int
    improved: int
    worsened: int
    unsure: int
    repairs: dict[str, int]
    moves: tuple[tuple[str, str, int], ...]


class RefinementTables(Model, frozen=True, kw_only=True):
    """All that is said of rounds."""

    rounds: tuple[RoundRates, ...]
    fates: tuple[ChainFates, ...]
    changes: tuple[RoundChanges, ...]


class DevicePair(Model, frozen=True, kw_only=True):
    """How two devices rank the same kernels."""

    one: str
    other: str
    correlation: CorrelationRecord


class PortableKernel(Model, frozen=True, kw_only=True):
    """A kernel on several devices."""

    task: str
    sha256: str
    method: str | None
    model: str | None
    shapes: int
    speedups: dict[str, Number]
    spread: Number
    differs: bool
    flips: bool


class PortabilityTables(Model, frozen=True, kw_only=True):
    """The same kernels on several devices."""

    devices: tuple[str, ...]
    baseline: str
    same_verdict: RateRecord
    timed: int
    median_spread: Number | None
    largest: Number | None
    differ: RateRecord
    flips: RateRecord
    pairs: tuple[DevicePair, ...]
    kernels: tuple[PortableKernel, ...]


class AnalyzeDocument(Model, frozen=True, kw_only=True):
    """`analyze --json`; `bibtex` is there where it was asked for."""

    schema: Literal[1] = 1
    runs: tuple[AnalyzedRun, ...]
    devices: tuple[str, ...]
    attempts: int
    distinct: int
    answers: int
    torch_only: TorchOnlyCount
    kept: Literal["best", "last"]
    notes: tuple[str, ...]
    rates: RateTables
    unsolved: UnsolvedTables
    pass_at_k: tuple[PassAtK, ...]
    fast_p: tuple[FastShare, ...]
    speedups: tuple[SpeedupRow, ...]
    efficiency: tuple[EfficiencyRow, ...]
    audit: AuditedKernels | None
    illusions: IllusionTables
    deviance: DevianceTables
    trajectories: RefinementTables
    portability: PortabilityTables | None
    exports: tuple[str, ...]
    missing: tuple[str, ...]
    bibtex: str | UnsetType = UNSET


class ReportDocument(Model, frozen=True, kw_only=True):
    """`report --json`: the page that was written, and what it holds."""

    schema: Literal[1] = 1
    out: str
    bytes: int
    kind: str
    title: str
    runs: int
    attempts: int
    distinct: int
    answers: int
    tasks: int
    categories: int
    methods: int
    findings: int
    corpus: bool
    notes: tuple[str, ...]
