"""Requests to a model and its replies: values only, no network and no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from kerneltruth.documents.model import Json
from kerneltruth.errors import InternalError

Role = Literal["system", "user", "assistant"]
Scope = Literal["call", "request", "endpoint", "chain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model: the conversation so far, for one attempt.

    Attributes:
        task: the task's key.
        sample: which of several independent answers, from 0.
        round: which revision of an answer, from 0.
    """

    task: str
    sample: int
    round: int
    messages: tuple[Message, ...]

    def __post_init__(self) -> None:
        if self.sample < 0 or self.round < 0 or not self.messages:
            raise InternalError(f"no request: sample {self.sample}, round {self.round}")

    @property
    def key(self) -> str:
        """What identifies it within a generation."""
        return f"{self.task} s{self.sample} r{self.round}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How answers are drawn.

    Attributes:
        temperature: None leaves it to the endpoint.
        reply_tokens: what an answer may have at most.
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
        text: what it says; of a refusal, the refusal.
        finish: why it ended: `stop`, `length`, `refusal`, `content_filter`, or the endpoint's word.
        usage: None where the endpoint does not say.
        reasoning: what it said to itself, where the endpoint shows that apart.
        model: the model's name as the endpoint spells it.
        id: the endpoint's name of the answer.
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
        scope: whether it spoils this call, so that another may do; this request; every request; or
            nothing, since the chain is simply at its end.
        detail: one line.
        wait_s: how long the endpoint asks to be left alone.
    """

    scope: Scope
    detail: str
    wait_s: float | None = None


class ChatModel(Protocol):
    """A model that answers several requests at once."""

    @property
    def label(self) -> str:
        """The model's name in labels."""
        ...

    async def call(self, request: Request) -> Reply | ApiError:
        """Ask once, without another try."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def text_size(messages: Sequence[Message]) -> int:
    """Bytes of a conversation."""
    return sum(byte_count(m.content) for m in messages)


def byte_count(text: str) -> int:
    """Bytes of a text, which may hold halves of characters."""
    return len(text.encode("utf-8", "surrogatepass"))
