"""The JSON of `audit --suite` and `audit --suite --timed`."""

from __future__ import annotations

from typing import Literal

from kerneltruth.documents.model import Model, Number


class FlaggedCase(Model, frozen=True, kw_only=True):
    """A case on which the eager function was wrong."""

    case: str
    verdict: str
    detail: str


class TaskProof(Model, frozen=True, kw_only=True):
    """The proof of one task; see `engine.proof.Proof`."""

    task: str
    category: str
    holds: bool
    cases: dict[str, int]
    flagged: tuple[FlaggedCase, ...]
    declined: dict[str, int]
    unrefereeable: dict[str, int]
    skipped: dict[str, int]
    idle: tuple[str, ...]
    trouble: str | None
    seconds: Number


class ProofCounts(Model, frozen=True, kw_only=True):
    """Counts over tasks: those that hold, their cases, and the verdicts on these."""

    tasks: int
    hold: int
    cases: int
    flagged: int
    declined: int
    unrefereeable: int
    skipped: int


class ProofSummary(ProofCounts, frozen=True, kw_only=True):
    """The counts of all tasks; `good` if there are some and all hold."""

    good: bool


class SuiteDocument(Model, frozen=True, kw_only=True):
    """`audit --suite --json`; `not_judged` names tasks for which time ran out."""

    schema: Literal[1] = 1
    suite: str
    device: str
    seed: int
    tasks: tuple[TaskProof, ...]
    categories: dict[str, ProofCounts]
    summary: ProofSummary
    not_judged: tuple[str, ...]
    seconds: Number


class SelfTimed(Model, frozen=True, kw_only=True):
    """PyTorch's function against itself on one shape; `again` if it was timed twice."""

    task: str
    shape: str
    outcome: str
    ratio: Number | None
    low: Number | None
    high: Number | None
    us: Number | None
    efficiency: Number | None
    again: bool


class SelfTimedReason(Model, frozen=True, kw_only=True):
    """Why a shape is not a tie."""

    task: str
    shape: str
    outcome: str
    why: str


class SelfTimedSummary(Model, frozen=True, kw_only=True):
    """Counts of shapes by outcome; `good` if each ties or says why it cannot."""

    tasks: int
    outcomes: dict[str, int]
    again: int
    good: bool


class TimedSuiteDocument(Model, frozen=True, kw_only=True):
    """`audit --suite --timed --json`.

    `unrefereeable` says why a task has no shapes. `spent` has the judge's seconds by activity; one
    within another counts in both.
    """

    schema: Literal[1] = 1
    suite: str | None
    device: str
    shapes: tuple[SelfTimed, ...]
    summary: SelfTimedSummary
    not_timed: tuple[str, ...]
    unrefereeable: dict[str, str]
    interrupted: bool
    spent: dict[str, Number]
    seconds: Number
    timed: int
    tie: int
    other: tuple[SelfTimedReason, ...]
