"""Tables of `analyze`: shares of answers, speedups, efficiency and illusions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kerneltruth.documents.contracts import ContractText
from kerneltruth.documents.estimates import EstimateRecord, GroupRecord, MethodRecord, RateRecord
from kerneltruth.documents.model import Model, Number
from kerneltruth.documents.records import Obligation

Place = Literal["published", "core", "beyond", "unknown"]


class StageRates(GroupRecord, frozen=True, kw_only=True):
    """The stages of one group: each counts those that passed it, of all attempts.

    By dtype, each attempt is right (`exe`), `failed` or open (`not_judged`, `stopped_before`) in
    it, and the four add up; `analysis.dtype_rates` defines them. `call` and `exe` count what is
    known to pass, `call_most` and `exe_most` also what is open.

    Attributes:
        tasks: how many tasks the attempts are for.
        load: those whose source loads; `compile`: those of them whose kernels compile, or that fail
            before they do. Both are null by dtype.
        not_tried: by stage, attempts of runs that did not have it; a stage that none of them had
            has no share.
        not_judged: attempts without a verdict on the candidate, such as `unsupported_here`; by
            dtype, those of them that are open in it.
        stopped_before: by dtype only: the other attempts that are open in it.
        failed: by dtype only: attempts that break or refuse what decides in every dtype, or the
            obligation of this one.
    """

    attempts: int
    tasks: int
    load: RateRecord | None
    compile: RateRecord | None
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


class SpentSum(Model, frozen=True, kw_only=True):
    """Tokens, seconds or money that the attempts of one method took.

    Attributes:
        total: of the attempts of which it is known; null where there is none.
        unknown: the other attempts.
        per_success: the total over the right answers; null where anything is unknown, or nothing is
            right.
    """

    total: Number | None
    unknown: int
    per_success: Number | None


class SpendingRow(MethodRecord, frozen=True, kw_only=True):
    """What the answers of one method took, in every round.

    Attributes:
        attempts: distinct ones, every round among them.
        right: answers that are right.
        tokens: of prompt and completion; `seconds` are the model's.
        judge_seconds: of judging and timing answers between the rounds of a method; the judgements
            of the run itself are no part of it.
    """

    attempts: int
    right: int
    tokens: SpentSum
    seconds: SpentSum
    cost: SpentSum
    judge_seconds: SpentSum


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
    """The kernels that one peer check certifies in one group.

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
    """A wrong kernel that at least one peer check certifies.

    Attributes:
        run: path of its run.
        checks: those that certify it.
        contract: whose obligations decided; empty where an earlier version judged.
        obligations: those that it breaks or refuses a part of.
        place: where it is wrong (see `IllusionPlaces`).
        finding: path of its finding.
        torch_only: it has no kernel of its own, only calls of PyTorch.
    """

    run: str
    key: str
    task: str
    torch_only: bool
    category: str | None
    method: str | None
    model: str | None
    checks: tuple[str, ...]
    contract: str
    obligations: tuple[Obligation, ...]
    place: Place | None
    verdict: str
    kind: str | None
    detail: str
    finding: str | None


class IllusionTables(Model, frozen=True, kw_only=True):
    """All illusions; `contracts` has those that decided, by name."""

    attempts: int
    any_check: RateRecord
    overall: tuple[IllusionRates, ...]
    by: tuple[IllusionRatesBy, ...]
    findings: tuple[IllusionRecord, ...]
    contracts: dict[str, ContractText]
