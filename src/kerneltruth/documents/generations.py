"""The JSON of `generate`, and the files of a generation."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType, field

from kerneltruth import __version__
from kerneltruth.documents.lines import PublishedVerdict, SpentRecord
from kerneltruth.documents.model import SCHEMA, Json, Model, Number, Stored
from kerneltruth.documents.runs import NotRead


class UnansweredChain(Model, frozen=True, kw_only=True):
    """A chain that brought no answer."""

    task: str
    sample: int
    why: str


class SpendingRecord(Model, frozen=True, kw_only=True):
    """The cost of answers; null means unknown.

    Attributes:
        answers: of the model, diagnoses among them.
        cached: answers that came from a cache, and were not paid again; calls, tokens and cost are
            those of all answers.
        judge_seconds: of judging and timing answers between rounds.
    """

    calls: int
    answers: int
    prompt_tokens: int | None
    completion_tokens: int | None
    tokens: int | None
    answers_without_tokens: int
    cost: Number | None
    cached: int = 0
    judge_seconds: Number = 0.0


class Refinement(Model, frozen=True, kw_only=True):
    """How many chains are right after their first, best and last round."""

    chains: int
    right_at_first: int
    right_at_best: int
    right_at_last: int
    rounds: int


class GenerateDocument(Model, frozen=True, kw_only=True):
    """`generate --json`; `stopped` names the exhausted part of the budget."""

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
    spent: SpentRecord


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
    spent: SpentRecord | UnsetType = UNSET


class SamplingRecord(Model, frozen=True, kw_only=True):
    """How answers are drawn; `body` has further fields of each request, as the user gave them."""

    temperature: Number | None
    reply_tokens: int
    body: dict[str, Json]


class PromptsRecord(Model, frozen=True, kw_only=True):
    """The prompts that were used, and the language in which they ask for kernels."""

    version: str
    sha256: str
    language: str = "triton"


class FeedbackRecord(Model, frozen=True, kw_only=True):
    """The judge's settings for reviews between rounds.

    `require_kernel` and `kernels` are left out where they are not set, as earlier versions do.
    """

    seed: int
    cases: int
    contract: str = ""
    require_kernel: bool | UnsetType = UNSET
    kernels: bool | UnsetType = UNSET


class GenerationResult(Model, frozen=True, kw_only=True):
    """The result of a generation, as its manifest records it."""

    answers: int
    unanswered: tuple[UnansweredChain, ...]
    stopped: str | None
    account: SpendingRecord
    refine: Refinement | None


class GenerationManifest(Stored, frozen=True, kw_only=True):
    """The description of a generation: `generation.json`.

    A generation that reads submissions has `from` instead of a model's request. `identity` hashes
    what a resumed command must request too. `ended` and `result` are absent while it lasts, `shots`
    and `gpu` where the prompts show none.
    """

    schema: int = SCHEMA
    version: str = __version__
    suite: str
    method: str
    model: str | None
    endpoint: str | UnsetType | None = UNSET
    recording: str | UnsetType | None = UNSET
    samples: int | UnsetType = UNSET
    rounds: int | UnsetType = UNSET
    sampling: SamplingRecord | UnsetType = UNSET
    prompts: PromptsRecord | UnsetType = UNSET
    show_reference: bool | UnsetType = UNSET
    show_example: bool | UnsetType = UNSET
    shots: int | UnsetType = UNSET
    gpu: str | UnsetType = UNSET
    feedback: FeedbackRecord | UnsetType | None = UNSET
    source: str | UnsetType = field(default=UNSET, name="from")
    identity: str | UnsetType = UNSET
    started: str | UnsetType = UNSET
    ended: str | UnsetType = UNSET
    result: GenerationResult | UnsetType = UNSET
