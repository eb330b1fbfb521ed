"""What `generate` prints as JSON, and what the files of a generation hold."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from kerneltruth.documents.lines import PublishedVerdict
from kerneltruth.documents.model import Model, Number
from kerneltruth.documents.runs import NotRead


class UnansweredChain(Model, frozen=True, kw_only=True):
    """A chain that brought no answer."""

    task: str
    sample: int
    why: str


class SpendingRecord(Model, frozen=True, kw_only=True):
    """What answers have cost; null is what nobody knows."""

    calls: int
    answers: int
    prompt_tokens: int | None
    completion_tokens: int | None
    tokens: int | None
    answers_without_tokens: int
    cost: Number | None


class Refinement(Model, frozen=True, kw_only=True):
    """How many chains are right after their first, best and last round."""

    chains: int
    right_at_first: int
    right_at_best: int
    right_at_last: int
    rounds: int


class GenerateDocument(Model, frozen=True, kw_only=True):
    """`generate --json`; `stopped` names the budget that is spent."""

    schema: Literal[1] = 1
    suite: str
    method: str
    tasks: int
    chains: int
    answers: int
    finishes: dict[str, int]
    unanswered: tuple[UnansweredChain, ...]
    not_asked: int
    stopped: str | None
    account: SpendingRecord
    refine: Refinement | None
    broken: tuple[NotRead, ...]
    seconds: Number
    run: str
    candidates: str


class AnswerLine(Model, frozen=True, kw_only=True):
    """A line of `answers.jsonl`: a model's answer as a submission."""

    task: str
    suite: str
    method: str
    model: str
    sample: int
    round: int
    finish: str | None
    predict: str


class ImportedLine(Model, frozen=True, kw_only=True):
    """A line of `answers.jsonl`: a submission that `generate --method import` read."""

    task: str
    suite: str
    method: str | None
    model: str | None
    sample: int | None
    round: int | None
    origin: str
    code: str
    peer: PublishedVerdict | UnsetType = UNSET
