"""Tables of `analyze`: factors of correctness, and the effects of rounds and devices."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from kerneltruth.documents.estimates import (
    CorrelationRecord,
    EstimateRecord,
    MethodRecord,
    RateRecord,
)
from kerneltruth.documents.model import Model, Number

ModelName = Literal["category", "method", "category + method", "category * method"]


class DevianceTerm(Model, frozen=True, kw_only=True):
    """The part of the null deviance that one model explains.

    Attributes:
        df: coefficients beyond the intercept.
        deviance: the unexplained part.
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
    """The drop of deviance when a term joins a model that has the others.

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
    """The correlation of one measure of the reference with failure, over tasks.

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
        rescued: chains that this round brings from a wrong answer to a right one; null in the first
            round. A chain of which either answer could not be judged is not among them.
        persistent: chains that are right both before and after this round, with what ended before.
        rescued_speedup: of the rescued chains' answers of this round; likewise
            `persistent_speedup`.
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
    rescued: RateRecord | None
    persistent: RateRecord | None
    rescued_speedup: EstimateRecord | None
    persistent_speedup: EstimateRecord | None


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
    """Differences between devices.

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
