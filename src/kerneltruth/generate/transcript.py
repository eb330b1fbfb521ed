"""The transcript of a generation: every exchange in full, on disk before it is used.

`exchanges.jsonl` is append-only, with a line for each answer and diagnosis, for each request that
brought none, and for each verdict that became feedback. A generation that was stopped or killed
continues from it and never repeats an answered request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import UNSET, UnsetType, structs

from kerneltruth.documents.model import Json, Stored, parse
from kerneltruth.errors import UserError
from kerneltruth.generate.account import Account
from kerneltruth.generate.chat import FailureScope, Message, Part, Reply, byte_count
from kerneltruth.generate.request_pool import Sent
from kerneltruth.generate.review import Review
from kerneltruth.runs.ledger import Ledger

TRANSCRIPT = "exchanges.jsonl"


class FailedCall(Stored, frozen=True, kw_only=True):
    """Why a request brought no answer."""

    scope: FailureScope
    detail: str


class ExchangeLine(Stored, frozen=True, kw_only=True):
    """A line of the transcript: what a model said, a request without an answer, or a verdict."""

    kind: Literal["answer", "diagnosis", "failure", "review"]
    task: str
    sample: int
    round: int
    at: str | UnsetType = UNSET
    tries: int | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    cached: bool | UnsetType = UNSET
    messages: tuple[Message, ...] | UnsetType = UNSET
    reply: Reply | UnsetType = UNSET
    trouble: FailedCall | UnsetType = UNSET
    review: Review | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredLine:
    """A line without its conversation.

    `size` is the conversation's in bytes, `brief` a hash of the task.
    """

    line: ExchangeLine
    brief: str | None
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An answer, or a diagnosis of one, that is in the transcript."""

    task: str
    sample: int
    round: int
    reply: Reply
    seconds: float | None = None


class Transcript:
    """The log of a generation, read and appended.

    Attributes:
        account: what its answers have cost.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there, and lock it against other writers.

        Raises:
            UserError: it is damaged.
            EnvironmentFault: another process is writing it.
        """
        self._ledger = Ledger(path, keep=partial(_kept, path=path), lines_are="exchange")
        self._ledger.lock()
        self.notes = self._ledger.notes
        self.account = Account()
        # By part, and then by task, sample and round.
        self._said: dict[Part, dict[tuple[str, int, int], Exchange]] = {
            "answer": {},
            "diagnosis": {},
        }
        self._reviews: dict[tuple[str, int, int], Review] = {}
        self._failures: dict[tuple[str, int, int], int] = {}
        self._briefs: dict[str, str] = {}
        for line in self._ledger.lines():
            self._take(line)

    def close(self) -> None:
        """Release the file."""
        self._ledger.close()

    def reply(self, task: str, sample: int, turn: int) -> Reply | None:
        """Return the answer at that place, if there is one."""
        found = self._said["answer"].get((task, sample, turn))
        return None if found is None else found.reply

    def diagnosis(self, task: str, sample: int, turn: int) -> Exchange | None:
        """Return the model's diagnosis of that answer, if there is one."""
        return self._said["diagnosis"].get((task, sample, turn))

    def review(self, task: str, sample: int, turn: int) -> Review | None:
        """Return the verdict on that answer, if there is one."""
        return self._reviews.get((task, sample, turn))

    def exchanges(self) -> Iterator[Exchange]:
        """Return every answer, by task, sample and round."""
        for _, exchange in sorted(self._said["answer"].items()):
            yield exchange

    def refuse_other_briefs(self, briefs: Mapping[str, str], path: Path) -> None:
        """Refuse a task whose prompt has changed.

        Raises:
            UserError: the prompt has changed, as after an upgrade that improves it.
        """
        for task, brief in briefs.items():
            if self._briefs.get(task, brief_hash := _hash(brief)) != brief_hash:
                raise UserError(
                    f"--out {path}: the prompt for {task} has changed; name a new "
                    "directory, since answers to different questions are not one sample"
                )

    def record(self, sent: Sent) -> None:
        """Append an exchange; it is on disk when this returns.

        Raises:
            EnvironmentFault: it cannot be written.
        """
        request, answer = sent.request, sent.answer
        place = (request.task, request.sample, request.round)
        line = ExchangeLine(
            kind=request.part,
            task=request.task,
            sample=request.sample,
            round=request.round,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            tries=sent.tries,
            seconds=round(sent.seconds, 3),
            cached=sent.cached or UNSET,
            messages=request.messages,
        )
        if isinstance(answer, Reply):
            self._ledger.append(request.key, structs.replace(line, reply=answer))
            self._keep(request.part, line, answer)
            return
        number = self._failures.get(place, 0) + 1
        self._failures[place] = number
        trouble = FailedCall(scope=answer.scope, detail=answer.detail)
        key = f"{request.key} failure {number}"
        self._ledger.append(key, structs.replace(line, kind="failure", trouble=trouble))

    def add_review(self, task: str, sample: int, turn: int, review: Review) -> None:
        """Append a verdict; it is on disk when this returns."""
        key = f"{task} s{sample} r{turn} review"
        line = ExchangeLine(kind="review", task=task, sample=sample, round=turn, review=review)
        self._ledger.append(key, line)
        self._reviews[task, sample, turn] = review
        self.account.judge_s += review.seconds

    def _keep(self, part: Part, line: ExchangeLine, reply: Reply) -> None:
        self._said[part][line.task, line.sample, line.round] = Exchange(
            task=line.task,
            sample=line.sample,
            round=line.round,
            reply=reply,
            seconds=None if line.seconds is UNSET else line.seconds,
        )

    def _take(self, kept: _StoredLine) -> None:
        line, place = kept.line, (kept.line.task, kept.line.sample, kept.line.round)
        if kept.brief is not None:
            self._briefs[line.task] = kept.brief
        if line.kind == "failure":
            self._failures[place] = self._failures.get(place, 0) + 1
            self.account.calls += line.tries or 0
        if line.review:
            self._reviews[place] = line.review
            self.account.judge_s += line.review.seconds
        if line.reply:
            self._keep("diagnosis" if line.kind == "diagnosis" else "answer", line, line.reply)
            size = kept.size + byte_count(line.reply.text)
            cached = line.cached is True
            self.account.add_answer(line.tries or 0, line.reply.usage, size, cached=cached)


def _kept(data: Mapping[str, Json], path: Path) -> _StoredLine:
    """Return the part of a line that stays in memory: the conversation's size, not its text.

    Raises:
        UserError: the line is damaged.
    """
    try:
        line = parse(ExchangeLine, data)
    except UserError as error:
        raise UserError(
            f"{path}: the line {data['key']!r} is damaged ({error}); restore the file, or "
            "name a new directory with --out"
        ) from error
    contents = [message.content for message in line.messages or ()]
    return _StoredLine(
        line=structs.replace(line, messages=UNSET),
        # The second message, after the system's, states the task.
        brief=_hash(contents[1]) if len(contents) > 1 else None,
        size=sum(map(byte_count, contents)),
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
