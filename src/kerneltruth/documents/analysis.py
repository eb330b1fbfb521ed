"""What `analyze` and `report` print as JSON: tables of shares, speedups, deviance and rounds.

`analysis` makes these models, and `report` shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict, cast

from msgspec import UNSET, UnsetType, field

from kerneltruth.documents.model import Model, Number

ModelName = Literal["category", "method", "category + method", "category * method"]
Label = str | UnsetType | None


class RateRecord(Model, frozen=True, kw_only=True):
    """A share with its counts and interval.

    Attributes:
        rate: null where the denominator is 0, or nothing was tried.
    """

    numerator: int
    denominator: int
    rate: Number | None
    low: Number | None
    high: Number | None


class EstimateRecord(Model, frozen=True, kw_only=True):
    """A mean, its interval, and how many values and clusters it rests on.

    Attributes:
        value: null where there is nothing to estimate from.
        low: null as `value`, where there is one cluster alone, and where no two values differ.
    """

    value: Number | None
    low: Number | None
    high: Number | None
    count: int
    clusters: int


class CorrelationRecord(Model, frozen=True, kw_only=True):
    """Spearman's rank correlation of pairs, with its interval.

    Attributes:
        value: null where one side has no spread, or there are fewer than four pairs.
    """

    value: Number | None
    low: Number | None
    high: Number | None
    pairs: int


class GroupLabels(TypedDict, total=False):
    """The values of a group, as the constructors of rows take them."""

    category: str | None
    method: str | None
    model: str | None
    suite: str | None
    task: str | None
    language: str | None
    round_label: str | None
    sample: str | None
    verdict: str | None
    dtype: str | None


def field_of(dimension: str) -> str:
    """Return the field that holds a dimension; `round` is a count in other rows."""
    return "round_label" if dimension == "round" else dimension


class Row(Model, frozen=True, kw_only=True):
    """A row of a table that is broken down."""

    def label(self, dimension: str) -> Label:
        """Return the row's value of a dimension; UNSET where it has none."""
        return cast(Label, getattr(self, field_of(dimension)))

    def group(self, by: Sequence[str]) -> tuple[str | None, ...]:
        """Return the row's values of dimensions; None where it has none."""
        labels = map(self.label, by)
        return tuple(None if isinstance(label, UnsetType) else label for label in labels)


class GroupRecord(Row, frozen=True, kw_only=True):
    """A row that has the dimensions of its break-down."""

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

    def is_by(self, by: Sequence[str]) -> bool:
        """Return whether the row is of this break-down."""
        known = {name for name in GroupLabels.__annotations__ if getattr(self, name) is not UNSET}
        return known == set(map(field_of, by))


class MethodRecord(Row, frozen=True, kw_only=True):
    """A row of a table by method."""

    method: str | None
    model: str | None


class AnalyzedRun(Model, frozen=True, kw_only=True):
    """What a run says of itself.

    Attributes:
        command: the command that made it: run, check or audit.
        ended: null where the run was stopped or goes on.
    """

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
    """The stages of one group: each counts those that passed it, of all attempts.

    By dtype, `call` and `exe` count what is known to pass: attempts that returned from a case of
    the dtype, and attempts that are right in all they were tried on. `call_most` and `exe_most`
    count what may: all but those that are known to fail in this dtype.

    Attributes:
        tasks: how many tasks the attempts are for.
        not_judged: attempts without a verdict on the candidate, such as `unsupported_here`.
        not_tried: by stage, attempts of runs that did not have it; a stage that none of them had
            has no share.
        stopped_before: by dtype only: attempts that failed in another dtype before all cases of
            this one were tried, or were not tried in it at all.
        failed: by dtype only: attempts whose first failure is in this dtype, or that do not load.
    """

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

    def rows(self, by: Sequence[str]) -> tuple[StageRates, ...]:
        """Return the rows of a break-down that was made."""
        return next(each.rows for each in self.by if each.by == tuple(by))


class UnsolvedTasks(GroupRecord, frozen=True, kw_only=True):
    """Tasks of one group for which no method has a right answer.

    Attributes:
        unsolved: of the tasks on which every method has a judged answer.
        partial: tasks on which some method has none; they are not in the denominator.
        tasks: names of those unsolved.
    """

    unsolved: RateRecord
    partial: int
    tasks: tuple[str, ...]


class UnsolvedTables(Model, frozen=True, kw_only=True):
    """Unsolved tasks, in all and by category."""

    overall: UnsolvedTasks
    by_category: tuple[UnsolvedTasks, ...]


class PassAtK(MethodRecord, frozen=True, kw_only=True):
    """pass@k of a method: its mean over tasks, with an interval over tasks.

    Attributes:
        short: tasks with fewer than k judged samples, for which there is none.
        not_judged: samples without a verdict on their candidate, which are left out.
    """

    k: int
    value: EstimateRecord
    tasks: int
    short: int
    not_judged: int


class FastShare(GroupRecord, frozen=True, kw_only=True):
    """fast_p of one group: answers that are right and more than `p` times as fast, of all.

    Attributes:
        share: it has no rate where nothing was timed, and p is not 0.
        surely: answers whose whole interval lies above p.
        untimed: right answers without a time against this baseline; they count as not faster.
    """

    baseline: str
    p: Number
    share: RateRecord
    surely: int
    untimed: int


class SpeedupRow(GroupRecord, frozen=True, kw_only=True):
    """Speedups of the right answers of one group against a baseline.

    Attributes:
        correct: right answers; `timed` of them have a time against this baseline.
        mean: the geometric mean, with an interval over tasks.
        median: of the speedups.
        slower: those below 1x, of the timed.
        surely_slower: those whose interval lies below 1, by at least the clock's minimum effect.
        surely_faster: likewise above.
        ties: those whose interval allows neither.
    """

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
    """Efficiency of the right answers of one group: the device's least time over theirs.

    Attributes:
        known: right answers with an efficiency.
        bound_by: how many shapes are bound by memory, compute, launch or latency.
    """

    known: int
    mean: EstimateRecord
    median: Number | None
    bound_by: dict[str, int]


class AuditedKernels(Model, frozen=True, kw_only=True):
    """Counts of kernels. They are chosen, not drawn: a share of them has no interval.

    Attributes:
        kernels: all; those of earlier runs do not say whether they are controls or bugs.
    """

    kernels: int
    controls: int
    controls_clean: int
    bugs: int
    bugs_caught: int


class IllusionRates(GroupRecord, frozen=True, kw_only=True):
    """What one check certifies in one group.

    Attributes:
        illusions: certified kernels that are wrong, of all that the check certifies.
        of_wrong: the same kernels, of all that the judge rejects and the check was asked about.
        false_alarms: kernels that the check rejects and the judge finds nothing wrong with.
        not_judged: certified kernels that could not be judged here.
    """

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
    """A wrong kernel that at least one check certifies.

    Attributes:
        run: path of its run.
        checks: those that certify it.
        finding: path of its finding.
    """

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
    """What one model explains of the null deviance.

    Attributes:
        df: coefficients beyond the intercept.
        deviance: what it leaves.
        explained: 1 - D/D0.
        low: of the bootstrap interval over tasks. It is about what the model explains in the
            population of tasks, without what any model explains of a sample by chance.
        outside: whether the explained share lies outside that interval, chance explaining much.
        per_df: explained share for each coefficient.
        adjusted: the same with D and D0 each divided by its degrees of freedom.
        mcfadden: 1 - L/L0 of log-likelihoods; `mcfadden_adjusted` takes df off L.
        by_chance: what the model explains on average of shuffled tasks, which have no effect to
            explain.
        p_permutation: how often they explain as much.
        p_likelihood: of the likelihood-ratio test, which takes answers to one task as unrelated.
        penalized: the explained share of Firth's estimates; null where nothing is separated.
    """

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
    """What one more term takes off the deviance of a model that has the others.

    Attributes:
        added: the term, and `to` the model that it is added to.
    """

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
    """How one measure of the reference goes with failure, over tasks.

    Attributes:
        call: its rank correlation with the share of answers that do not run.
        exe: with the share of answers that are not right, of all.
    """

    proxy: str
    call: CorrelationRecord
    exe: CorrelationRecord


class DevianceTables(Model, frozen=True, kw_only=True):
    """The analysis of deviance of correctness, or why there is none; and complexity.

    Attributes:
        unavailable: why there is no such statistic; the other fields are absent then.
        answers: those that were judged; `not_judged` are left out.
        separated: levels that are all right or all wrong, whose coefficients are infinite.
        notes: what was left out and why, one line each.
    """

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
    """All chains of one group after a round.

    Attributes:
        made: chains that have an answer of this round; the others ended before.
        not_judged: chains whose latest answer could not be judged; they are in the denominators.
        call: by each chain's latest answer; likewise `exe`.
        kept: right by the best answer so far.
        speedup: of the latest answers that are right and timed.
        steady: of the chains that are right and timed in every round up to this one, so that
            the same kernels' tasks are compared.
    """

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
    """How the chains of one group end; each ends in exactly one way.

    Rounds that could not be judged are ignored: a chain's fate is that of its other rounds.

    Attributes:
        persistent: right in every round.
        rescued: wrong at first, right at the last.
        regained: right at first and at the last, and wrong between.
        lost: right at some time, wrong at the last.
        never: wrong in every round.
        not_judged: chains of which no round could be judged.
        persistent_speedup: of the last answers that are timed; likewise for the rescued.
    """

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
    """The effect of one more round in one group.

    Attributes:
        steps: pairs of rounds that follow one another.
        not_judged: steps of which one end could not be judged; they begin neither right nor wrong.
        repaired: wrong, then right; of the steps that begin wrong.
        regressed: right, then wrong; of the steps that begin right.
        timed: steps from one right timed answer to another.
        higher: of them, those whose speedup is higher at all.
        improved: those where it is higher: the interval clears the noise floor, and the clock's
            minimum effect.
        worsened: likewise lower.
        unsure: those whose intervals, or noise floor, leave both open.
        repairs: how often each kind of wrong answer was followed by a right one.
        moves: all steps by what they lead from and to: (before, after, count).
    """

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
    """The chains of a study: by round, by how they end, and step by step."""

    rounds: tuple[RoundRates, ...]
    fates: tuple[ChainFates, ...]
    changes: tuple[RoundChanges, ...]


class DevicePair(Model, frozen=True, kw_only=True):
    """The rank correlation of the speedups of the kernels timed on two devices."""

    one: str
    other: str
    correlation: CorrelationRecord


class PortableKernel(Model, frozen=True, kw_only=True):
    """One kernel that is right and timed on two or more devices.

    Attributes:
        shapes: those that were timed on each of them; the speedups are of these.
        speedups: by device.
        spread: the largest over the smallest.
        differs: whether the intervals of some two devices exclude each other.
        flips: faster than the baseline on one device, and slower on another.
    """

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
    """What changes from device to device.

    Attributes:
        same_verdict: kernels right on all devices or on none, of those judged on two or more.
        median_spread: over the kernels timed on two or more; `largest` is the most.
        differ: how many of these differ beyond their intervals.
        flips: how many are faster here and slower there.
        kernels: each of these, the largest spread first.
    """

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
