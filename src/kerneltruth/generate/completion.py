"""Parse an endpoint's response: a chat completion, whole or as a stream of events.

Endpoints that claim to be compatible omit fields, or send something else. What cannot be an answer
becomes an error of this call, so that a retry may succeed; nothing here raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kerneltruth.documents.model import loads
from kerneltruth.generate.chat import ApiError, Reply, Usage

_SHOWN = 200
_REASONING = ("reasoning_content", "reasoning")


def read_completion(body: bytes) -> Reply | ApiError:
    """Parse the answer in the body of a response that was not streamed."""
    try:
        data = loads(body)
    except ValueError as error:
        return _malformed(f"not JSON ({error})", body)
    choice = _first_choice(data)
    if choice is None:
        return _malformed(_error_in(data) or "no choices", body)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        return _malformed("a choice without a message", body)
    return _reply(
        text=_text(message.get("content")),
        refusal=_text(message.get("refusal")),
        reasoning=next((t for name in _REASONING if (t := _text(message.get(name)))), ""),
        finish=choice.get("finish_reason"),
        about=data,
    )


@dataclass(slots=True)
class ReplyStream:
    """An answer that arrives in pieces: server-sent events, line by line."""

    text: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    finish: Any = None
    about: dict[str, object] = field(default_factory=dict)
    ended: bool = False
    error: ApiError | None = None

    def feed(self, line: str) -> bool:
        """Take a line; return whether more is to come."""
        name, colon, value = line.partition(":")
        if not colon or name != "data":
            return True
        value = value.strip()
        if value == "[DONE]":
            self.ended = True
            return False
        try:
            data = loads(value)
        except ValueError as error:
            self.error = _malformed(f"an event is not JSON ({error})", value.encode())
            return False
        if (said := _error_in(data)) is not None:
            self.error = ApiError(scope="call", detail=f"the stream broke off: {said}")
            return False
        if isinstance(data, Mapping):
            self._take(data)
        return True

    def _take(self, data: Mapping[str, Any]) -> None:
        self.about.update({k: data[k] for k in ("id", "model", "usage") if data.get(k) is not None})
        choice = _first_choice(data)
        if choice is None:
            return
        self.finish = choice.get("finish_reason") or self.finish
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            self.text.append(_text(delta.get("content")))
            self.refusal.append(_text(delta.get("refusal")))
            self.reasoning += [_text(delta.get(name)) for name in _REASONING]

    def reply(self) -> Reply | ApiError:
        """Return the answer, once all lines are in."""
        if self.error is not None:
            return self.error
        if self.finish is None and not self.ended:
            return ApiError(scope="call", detail="the stream ended in the middle of the answer")
        return _reply(
            text="".join(self.text),
            refusal="".join(self.refusal),
            reasoning="".join(self.reasoning),
            finish=self.finish,
            about=self.about,
        )


def error_line(body: Any, fallback: str) -> str:
    """Return an error response's message in one line."""
    said = _error_in(body) or _error_in({"error": body}) or fallback
    return " ".join(said.split())[:_SHOWN]


def _reply(
    *, text: str, refusal: str, reasoning: str, finish: Any, about: Mapping[str, Any]
) -> Reply:
    if refusal and not text:
        text, finish = refusal, "refusal"
    return Reply(
        text=text,
        finish=finish if isinstance(finish, str) else None,
        usage=_usage(about.get("usage")),
        reasoning=reasoning or None,
        model=_text(about.get("model")) or None,
        id=_text(about.get("id")) or None,
    )


def _first_choice(data: Any) -> Mapping[str, Any] | None:
    choices = data.get("choices") if isinstance(data, Mapping) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    return None


def _text(value: Any) -> str:
    """Return a text; from a list of parts, the text among them."""
    if isinstance(value, list):
        parts = (p.get("text") for p in value if isinstance(p, Mapping))
        value = "".join(p for p in parts if isinstance(p, str))
    # JSON can hold unpaired surrogates, which no file can.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, Mapping):
        return None
    counts = [value.get("prompt_tokens"), value.get("completion_tokens")]
    if not all(type(n) is int and n >= 0 for n in counts):
        return None
    return Usage(prompt=counts[0], completion=counts[1])  # type: ignore[arg-type]


def _error_in(data: Any) -> str | None:
    error = data.get("error") if isinstance(data, Mapping) else None
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("code")
    return error if isinstance(error, str) and error else None


def _malformed(what: str, body: bytes) -> ApiError:
    shown = " ".join(body[:_SHOWN].decode("utf-8", "replace").split())
    return ApiError(scope="call", detail=f"a malformed response: {what}: {shown!r}")
