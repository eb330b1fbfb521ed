"""Call an endpoint that speaks OpenAI's chat completions, through the `openai` client.

The client sends, authenticates and names errors. Retries are ours (`request_pool`): the budget must
admit each, and the transcript counts them. Reading the answer is ours too (`replying`): many
endpoints send what the client's own types do not expect.
"""

from __future__ import annotations

import asyncio
import email.utils
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import openai

from kerneltruth.generate.chat import ApiError, Reply, Request, Sampling
from kerneltruth.generate.completion import ReplyStream, error_line, read_completion
from kerneltruth.generate.key import Key, is_loopback

CONNECT_S = 20.0
MAX_REPLY_BYTES = 32 * 2**20
_OLD_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"
# Errors that a retry may not meet again; 409 is a lock, 425 a cold start.
_PASSING = (408, 409, 425, 429)
_NO_MONEY = ("insufficient_quota", "billing")


class Endpoint:
    """A model behind a URL."""

    def __init__(
        self,
        *,
        name: str,
        url: str,
        key: Key,
        sampling: Sampling,
        timeout_s: float,
        stream: bool = False,
    ) -> None:
        self._name = name
        self._key = key
        self._sampling = sampling
        self._timeout_s = timeout_s
        self._stream = stream
        self._limit_name = _OLD_LIMIT
        timeout = openai.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s))
        # A proxy from the environment cannot reach this machine itself.
        client = openai.DefaultAsyncHttpxClient(trust_env=not is_loopback(url), timeout=timeout)
        self._client = openai.AsyncOpenAI(
            base_url=url,
            api_key=key.reveal(),
            max_retries=0,
            timeout=timeout,
            http_client=client,
        )

    @property
    def label(self) -> str:
        """Return the model's name at the endpoint."""
        return self._name

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def call(self, request: Request) -> Reply | ApiError:
        """Send one call; a failure is returned as an error, with the key removed."""
        outcome = await self._call(request)
        if isinstance(outcome, ApiError):
            return replace(outcome, detail=self._key.hide(outcome.detail))
        return replace(
            outcome,
            text=self._key.hide(outcome.text),
            finish=self._hidden(outcome.finish),
            reasoning=self._hidden(outcome.reasoning),
            model=self._hidden(outcome.model),
            id=self._hidden(outcome.id),
        )

    def _hidden(self, text: str | None) -> str | None:
        return None if text is None else self._key.hide(text)

    async def _call(self, request: Request) -> Reply | ApiError:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._read(request)
        except (TimeoutError, openai.APITimeoutError):
            return ApiError(scope="call", detail=f"no whole answer within {self._timeout_s:g} s")
        except openai.APIConnectionError as error:
            return ApiError(scope="call", detail=f"no connection: {error.__cause__ or error}")
        except openai.APIStatusError as error:
            return self._refused(error)

    async def _read(self, request: Request) -> Reply | ApiError:
        method = self._client.chat.completions.with_streaming_response
        async with method.create(**self._body(request)) as response:
            try:
                if "text/event-stream" in response.headers.get("content-type", ""):
                    stream = ReplyStream()
                    async for line in _limited(response.iter_lines()):
                        if not stream.feed(line):
                            break
                    return stream.reply()
                chunks = [chunk async for chunk in _limited(response.iter_bytes())]
                return read_completion(b"".join(chunks))
            # The client does not wrap errors that the transport raises within a body, and the
            # transport library differs by version.
            except Exception as error:
                said = str(error) or type(error).__name__
                return ApiError(scope="call", detail=f"the answer broke off: {said}")

    def _body(self, request: Request) -> dict[str, object]:
        sampling = self._sampling
        body: dict[str, object] = {
            "model": self._name,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            self._limit_name: sampling.reply_tokens,
        }
        if sampling.temperature is not None:
            body["temperature"] = sampling.temperature
        if self._stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if sampling.body:
            body["extra_body"] = dict(sampling.body)
        return body

    def _refused(self, error: openai.APIStatusError) -> ApiError:
        said = error_line(error.body, str(error))
        code = error.status_code
        detail = f"{code}: {said}"
        if code == 400 and _NEW_LIMIT in said and self._limit_name == _OLD_LIMIT:
            # OpenAI's newer models accept the limit under its new name only.
            self._limit_name = _NEW_LIMIT
            return ApiError(scope="call", detail=detail, wait_s=0.0)
        about = f"{error.code or ''} {error.type or ''}"
        if code in (401, 402, 403) or (code == 429 and any(w in about for w in _NO_MONEY)):
            return ApiError(scope="endpoint", detail=detail)
        if code == 404:
            detail += f" (is {self._name!r} a model there, and the base URL right?)"
            return ApiError(scope="endpoint", detail=detail)
        if code in _PASSING or code >= 500:
            return ApiError(
                scope="call", detail=detail, wait_s=_asked_to_wait(error.response.headers)
            )
        return ApiError(scope="request", detail=detail)


async def _limited(pieces: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield the pieces of an answer.

    Raises:
        ValueError: the answer is too long.
    """
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > MAX_REPLY_BYTES:
            raise ValueError(f"it has more than {MAX_REPLY_BYTES} bytes")
        yield piece


def _asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """Parse the seconds of `Retry-After`, given as seconds, milliseconds, or a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) / unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    at = email.utils.parsedate_tz(headers.get("retry-after", ""))
    if at is None:
        return None
    until = datetime.fromtimestamp(email.utils.mktime_tz(at), UTC)
    return max((until - datetime.now(UTC)).total_seconds(), 0.0)
