"""A line of `results.jsonl`: an attempt, and how it ended by stage."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType, structs

from kerneltruth.documents.model import Model, Number, Stored, model_of, parse
from kerneltruth.documents.records import Attempt, Status
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.documents.verdict import FailKind, VerdictWord
from kerneltruth.errors import UserError

PEER_CHECKS = "peer_checks"
# Their key in lines of earlier versions; a shape's `baselines` are what it was timed against.
EARLIER_PEER_CHECKS = "baselines"


class StageRecord(Stored, frozen=True, kw_only=True):
    """A stage: `outcome` is a verdict, or `not_run`; `detail` says why it is not `pass`."""

    outcome: str
    cases: int | UnsetType = UNSET
    failed: int | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET


class StagesRecord(Stored, frozen=True, kw_only=True):
    """The stages that a run has."""

    call: StageRecord | UnsetType = UNSET
    exe: StageRecord | UnsetType = UNSET
    perf: CandidateTimes | UnsetType = UNSET

    def outcome(self, stage: str) -> str | None:
        """Return the outcome of a stage; None if the run does not have it."""
        said = getattr(self, stage)
        return None if said is UNSET else str(said.outcome)


class Labels(Model, frozen=True, kw_only=True):
    """Where a candidate comes from, as rates are later broken down; None where unknown.

    Attributes:
        sample: number of the independent answer.
        round: number of the revision of an answer, from 0.
    """

    method: str | None = None
    model: str | None = None
    sample: int | None = None
    round: int | None = None

    def over(self, defaults: Labels) -> Labels:
        """Return these labels, with the defaults for missing ones."""
        return Labels(
            method=self.method if self.method is not None else defaults.method,
            model=self.model if self.model is not None else defaults.model,
            sample=self.sample if self.sample is not None else defaults.sample,
            round=self.round if self.round is not None else defaults.round,
        )


class SpentRecord(Model, frozen=True, kw_only=True):
    """What the model's answer took; null where the endpoint or the user does not say.

    Attributes:
        seconds: from the request to the answer, with repeated tries.
        cost: in the currency of the prices that the user gave.
        judge_seconds: of judging and timing the answer for the next round, 0 where the method does
            not; null where an earlier version asked.
    """

    prompt_tokens: int | None
    completion_tokens: int | None
    seconds: Number | None
    cost: Number | None
    judge_seconds: Number | None = None


class PublishedVerdict(Model, frozen=True, kw_only=True):
    """The verdict of a peer's own evaluation on a submission; null means unknown."""

    check: str
    compiled: bool | None
    correct: bool | None
    runtime_ms: Number | None
    speedup: Number | UnsetType | None = UNSET
    statuses: dict[str, int] | UnsetType = UNSET


class DtypeVerdict(Model, frozen=True, kw_only=True):
    """What a peer check concludes in one dtype; `why` is None for a pass only."""

    verdict: Literal["pass", "fail", "error"]
    why: str | None
    runs: int


class PeerVerdict(Model, frozen=True, kw_only=True):
    """What a peer check concludes about a candidate.

    `pass` if it passes in one of the main dtypes, else `fail` if it fails in one, else `error`. A
    check of several dtypes at once passes if it passes in each, and fails if it fails in one.
    """

    name: str
    verdict: Literal["pass", "fail", "error"]
    why: str | None
    by_dtype: dict[str, DtypeVerdict]


class ObligationInLine(Stored, frozen=True, kw_only=True):
    """The result of one obligation, as a script reads it; the attempt's has all of it."""

    status: Status
    decisive: bool
    cases: int
    reason: str | None
    finding: str | None


class KernelInLine(Stored, frozen=True, kw_only=True):
    """The share of launches of own and of library kernels; null where launches are not seen."""

    own: Number | None
    library: Number | None
    launches: int


class ResultLine(Stored, frozen=True, kw_only=True):
    """One attempt; `same_as` names the line whose source it repeats, and which has the attempt.

    `passed` is of the attempt, and of its results while it was timed. `verdict`, `kind`,
    `contract`, `profile`, `hazards`, `score` and `kernel` are the attempt's, as `audit --json`
    shows them; lines of earlier versions lack them. `check` and `audit` omit what only `run` has:
    labels, stages and the origin of a source.
    `peer_checks` has what each peer's check says; `peer` is a verdict that came with the source,
    and `spent` what a model's answer took.
    """

    key: str
    name: str
    attempt: Attempt | UnsetType = UNSET
    passed: bool | UnsetType = UNSET
    verdict: VerdictWord | UnsetType = UNSET
    kind: FailKind | UnsetType | None = UNSET
    contract: str | UnsetType = UNSET
    profile: dict[str, ObligationInLine] | UnsetType = UNSET
    hazards: tuple[str, ...] | UnsetType = UNSET
    score: Number | UnsetType | None = UNSET
    kernel: KernelInLine | UnsetType | None = UNSET
    finding: str | UnsetType | None = UNSET
    same_as: str | UnsetType = UNSET
    task: str | UnsetType = UNSET
    category: str | UnsetType = UNSET
    origin: str | UnsetType = UNSET
    sha256: str | UnsetType = UNSET
    labels: Labels | UnsetType = UNSET
    peer: PublishedVerdict | UnsetType = UNSET
    spent: SpentRecord | UnsetType = UNSET
    torch_only: bool | UnsetType = UNSET
    headers: Literal["lean", "full"] | UnsetType = UNSET
    own_weights: str | UnsetType = UNSET
    stages: StagesRecord | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    peer_checks: dict[str, PeerVerdict] | UnsetType = UNSET
    role: Literal["control", "bug"] | UnsetType = UNSET


def read_line(data: object) -> ResultLine:
    """Read a line.

    Raises:
        UserError: it is of another form.
    """
    if isinstance(data, dict) and EARLIER_PEER_CHECKS in data:
        data = {PEER_CHECKS: data[EARLIER_PEER_CHECKS], **data}
    return parse(ResultLine, data)


def with_attempt(
    line: ResultLine, attempt: Attempt, *, passed: bool, finding: str | None
) -> ResultLine:
    """Return the line with an attempt, and with what the attempt comes to."""
    kernel = attempt.kernel
    return structs.replace(
        line,
        attempt=attempt,
        passed=passed,
        verdict=attempt.verdict.word,
        kind=getattr(attempt.verdict, "kind", None),
        contract=attempt.contract,
        profile={k: model_of(ObligationInLine, entry) for k, entry in attempt.profile.items()},
        hazards=tuple(attempt.hazards.values()),
        score=attempt.score,
        kernel=None if kernel is None else model_of(KernelInLine, kernel),
        finding=finding,
    )


def attempt_in(line: ResultLine) -> Attempt:
    """Return the attempt of a line that has one.

    Raises:
        UserError: it has none.
    """
    if line.attempt is UNSET:
        raise UserError(f"the line {line.key!r} has no attempt; repeat the run")
    return line.attempt
