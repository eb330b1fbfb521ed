"""A line of `results.jsonl`: an attempt, and what a run says of it by stage."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from kerneltruth.documents.model import Model, Number, Stored, parse
from kerneltruth.documents.records import Attempt
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.errors import UserError


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
        """What came of a stage; None if the run does not have it."""
        said = getattr(self, stage)
        return None if said is UNSET else str(said.outcome)


class LabelsRecord(Model, frozen=True, kw_only=True):
    """Where a submission comes from."""

    method: str | None
    model: str | None
    sample: int | None
    round: int | None


class PublishedVerdict(Model, frozen=True, kw_only=True):
    """What a peer's own evaluation said of a submission; null is not known."""

    check: str
    compiled: bool | None
    correct: bool | None
    runtime_ms: Number | None
    speedup: Number | UnsetType | None = UNSET
    statuses: dict[str, int] | UnsetType = UNSET


class PeerDtypeRecord(Model, frozen=True, kw_only=True):
    """What a peer check concludes in one dtype, and from how many runs."""

    verdict: Literal["pass", "fail", "error"]
    why: str | None
    runs: int


class PeerVerdictRecord(Model, frozen=True, kw_only=True):
    """What a peer check concludes of a candidate."""

    name: str
    verdict: Literal["pass", "fail", "error"]
    why: str | None
    by_dtype: dict[str, PeerDtypeRecord]


class ResultLine(Stored, frozen=True, kw_only=True):
    """One attempt; `same_as` names the line whose source it repeats, and which has the attempt.

    `check` and `audit` leave out what only `run` knows: labels, stages and where a source is from.
    """

    key: str
    name: str
    attempt: Attempt | UnsetType = UNSET
    finding: str | UnsetType | None = UNSET
    same_as: str | UnsetType = UNSET
    task: str | UnsetType = UNSET
    category: str | UnsetType = UNSET
    origin: str | UnsetType = UNSET
    sha256: str | UnsetType = UNSET
    labels: LabelsRecord | UnsetType = UNSET
    peer: PublishedVerdict | UnsetType = UNSET
    torch_only: bool | UnsetType = UNSET
    headers: Literal["lean", "full"] | UnsetType = UNSET
    own_weights: str | UnsetType = UNSET
    stages: StagesRecord | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    baselines: dict[str, PeerVerdictRecord] | UnsetType = UNSET
    role: Literal["control", "bug"] | UnsetType = UNSET


def read_line(data: object) -> ResultLine:
    """Read a line.

    Raises:
        UserError: it is of another form.
    """
    return parse(ResultLine, data)


def attempt_in(line: ResultLine) -> Attempt:
    """The attempt of a line that has one.

    Raises:
        UserError: it has none.
    """
    if line.attempt is UNSET:
        raise UserError(f"the line {line.key!r} has no attempt; make the run again")
    return line.attempt
