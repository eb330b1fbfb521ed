"""Values for requests to a model and its replies: no network and no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from kerneltruth.documents.model import Json
from kerneltruth.errors import InternalError

ChatRole = Literal["system", "user", "assistant"]
FailureScope = Literal["call", "request", "endpoint", "chain"]
Part = Literal["answer", "diagnosis"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    role: ChatRole
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model: the conversation so far, for one attempt.

    Attributes:
        sample: number of the independent answer, from 0.
        round: number of the revision of an answer, from 0.
        part: what is asked for: the answer of that round, or a diagnosis of it.
    """

    task: str
    sample: int
    round: int
    messages: tuple[Message, ...]
    part: Part = "answer"

    def __post_init__(self) -> None:
        if self.sample < 0 or self.round < 0 or not self.messages:
            raise InternalError(f"no request: sample {self.sample}, round {self.round}")

    @property
    def key(self) -> str:
        """Return its identity within a generation."""
        place = f"{self.task} s{self.sample} r{self.round}"
        return place if self.part == "answer" else f"{place} {self.part}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How answers are drawn.

    Attributes:
        temperature: None leaves it to the endpoint.
        body: further fields of the request, as the endpoint knows them.
    """

    temperature: float | None = None
    reply_tokens: int = 8192
    body: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one answer, as the endpoint counts them."""

    prompt: int
    completion: int

    def __post_init__(self) -> None:
        if self.prompt < 0 or self.completion < 0:
            raise InternalError(f"negative tokens: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer.

    Attributes:
        text: the answer, or the refusal.
        finish: why it ended: `stop`, `length`, `refusal`, `content_filter`, or the endpoint's word.
        reasoning: the model's reasoning, if the endpoint returns it separately.
        model: the model's name as the endpoint spells it.
        id: the endpoint's id of the answer.
    """

    text: str
    finish: str | None = None
    usage: Usage | None = None
    reasoning: str | None = None
    model: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiError:
    """A call that brought no answer.

    Attributes:
        scope: what it affects: this call, so that another may succeed; this request; every request;
            or nothing, since the chain has simply ended.
        wait_s: the pause that the endpoint asks for.
    """

    scope: FailureScope
    detail: str
    wait_s: float | None = None


class ChatModel(Protocol):
    """A model that answers several requests at once."""

    @property
    def label(self) -> str:
        """Return the model's name in labels."""
        ...

    async def call(self, request: Request) -> Reply | ApiError:
        """Send one call, without a retry."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def text_size(messages: Sequence[Message]) -> int:
    """Return the bytes of a conversation."""
    return sum(byte_count(m.content) for m in messages)


def byte_count(text: str) -> int:
    """Return the bytes of a text, which may hold unpaired surrogates."""
    return len(text.encode("utf-8", "surrogatepass"))
