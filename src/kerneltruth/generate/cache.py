"""Answers kept by content, so that a request that was answered before is not paid again.

A request is the same if all that may change its answer is: endpoint, model, sampling and messages.
Its sample, round and part count as well: independent answers to one question stay independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kerneltruth.documents.generations import SamplingRecord
from kerneltruth.documents.model import (
    Model,
    Number,
    Stored,
    content_hash,
    dumps,
    loads,
    model_of,
    parse,
)
from kerneltruth.errors import UserError
from kerneltruth.generate.chat import Message, Part, Reply, Request, Sampling
from kerneltruth.runs.files import write_whole, writing

SCHEMA = 1


class CachedRequest(Model, frozen=True, kw_only=True):
    """All that may change an answer, and what keeps independent answers to it apart."""

    url: str
    model: str
    sampling: SamplingRecord
    messages: tuple[Message, ...]
    sample: int
    round: int
    part: Part


class CachedAnswer(Stored, frozen=True, kw_only=True):
    """A file of the cache; `seconds` is what the answer took when it was asked for."""

    schema: int = SCHEMA
    request: CachedRequest
    reply: Reply
    seconds: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCache:
    """A folder of answers, with a file for each, named after the hash of its request.

    Several generations may share it, also at once.
    """

    folder: Path
    url: str
    model: str
    sampling: Sampling

    def get(self, request: Request) -> CachedAnswer | None:
        """Return the answer to the same request; None if there is none, or its file is damaged."""
        content = self._content(request)
        try:
            kept = parse(CachedAnswer, loads(self._path(content).read_bytes()))
        except (OSError, ValueError, UserError):
            return None
        return kept if kept.schema == SCHEMA and kept.request == content else None

    def put(self, request: Request, reply: Reply, seconds: float) -> None:
        """Keep an answer.

        Raises:
            EnvironmentFault: it cannot be written.
        """
        content = self._content(request)
        path = self._path(content)
        kept = CachedAnswer(request=content, reply=reply, seconds=seconds)
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, dumps(kept, indent=1).encode() + b"\n")

    def _content(self, request: Request) -> CachedRequest:
        return CachedRequest(
            url=self.url,
            model=self.model,
            sampling=model_of(SamplingRecord, self.sampling),
            messages=request.messages,
            sample=request.sample,
            round=request.round,
            part=request.part,
        )

    def _path(self, content: CachedRequest) -> Path:
        name = content_hash(content)
        return self.folder / name[:2] / f"{name}.json"
