"""The transcript of a generation: every exchange in full, on disk before it is used.

`exchanges.jsonl` is append-only, with a line for each answer, for each request that brought none,
and for each verdict that a next round was told of. A generation that was stopped, or killed, reads
it and goes on: what has an answer is not asked again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kerneltruth.documents.model import parse, plain
from kerneltruth.errors import UserError
from kerneltruth.generate.account import Account
from kerneltruth.generate.chat import Reply, byte_count
from kerneltruth.generate.request_pool import Answered, Unanswered
from kerneltruth.generate.review import Review
from kerneltruth.runs.ledger import Ledger

TRANSCRIPT = "exchanges.jsonl"
ANSWER, FAILURE, REVIEW = "answer", "failure", "review"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An answer that is in the transcript."""

    task: str
    sample: int
    round: int
    reply: Reply


class Transcript:
    """The log of a generation, and what it says so far.

    Attributes:
        account: what its answers have cost.
        notes: what reading it had to report.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there, and keep others from writing.

        Raises:
            UserError: it is damaged.
            EnvironmentFault: another process writes it.
        """
        self._ledger = Ledger(path, keep=_kept, lines_are="exchange")
        self._ledger.lock()
        self.notes = self._ledger.notes
        self.account = Account()
        self._answers: dict[tuple[str, int, int], Reply] = {}
        self._reviews: dict[tuple[str, int, int], Review] = {}
        self._failures: dict[tuple[str, int, int], int] = {}
        self._briefs: dict[str, str] = {}
        for line in self._ledger.lines():
            self._take(line, path)

    def close(self) -> None:
        """Release the file."""
        self._ledger.close()

    def reply(self, task: str, sample: int, turn: int) -> Reply | None:
        """The answer of that place, if there is one."""
        return self._answers.get((task, sample, turn))

    def review(self, task: str, sample: int, turn: int) -> Review | None:
        """The verdict on that answer, if there is one."""
        return self._reviews.get((task, sample, turn))

    def exchanges(self) -> Iterator[Exchange]:
        """Every answer, by task, sample and round."""
        for task, sample, turn in sorted(self._answers):
            reply = self._answers[task, sample, turn]
            yield Exchange(task=task, sample=sample, round=turn, reply=reply)

    def refuse_other_briefs(self, briefs: Mapping[str, str], path: Path) -> None:
        """Make sure that a task is put as it was before.

        Raises:
            UserError: one is not, as after an upgrade that says it better.
        """
        for task, brief in briefs.items():
            if self._briefs.get(task, brief_hash := _hash(brief)) != brief_hash:
                raise UserError(
                    f"--out {path}: {task} was put to the model in other words; name a new "
                    "directory, since answers to different questions are not one sample"
                )

    def record(self, outcome: Answered | Unanswered) -> None:
        """Add an exchange; it is on disk when this returns.

        Raises:
            EnvironmentFault: it cannot be written.
        """
        request = outcome.request
        place = (request.task, request.sample, request.round)
        line = {
            **_place(*place),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "tries": outcome.tries,
            "seconds": round(outcome.seconds, 3),
            "messages": plain(request.messages),
        }
        if isinstance(outcome, Answered):
            self._ledger.append(
                request.key, {"kind": ANSWER, **line, "reply": plain(outcome.reply)}
            )
            self._answers[place] = outcome.reply
            return
        number = self._failures.get(place, 0) + 1
        self._failures[place] = number
        error = {"scope": outcome.error.scope, "detail": outcome.error.detail}
        key = f"{request.key} failure {number}"
        self._ledger.append(key, {"kind": FAILURE, **line, "trouble": error})

    def add_review(self, task: str, sample: int, turn: int, review: Review) -> None:
        """Add a verdict; it is on disk when this returns."""
        place = (task, sample, turn)
        key = f"{task} s{sample} r{turn} review"
        self._ledger.append(key, {"kind": REVIEW, **_place(*place), "review": plain(review)})
        self._reviews[place] = review

    def _take(self, line: dict[str, Any], path: Path) -> None:
        try:
            place = (line["task"], line["sample"], line["round"])
            if line.get("brief") is not None:
                self._briefs[line["task"]] = line["brief"]
            match line["kind"]:
                case "answer":
                    reply = parse(Reply, line["reply"])
                    self._answers[place] = reply
                    size = line["asked"] + byte_count(reply.text)
                    self.account.add_answer(line["tries"], reply.usage, size)
                case "failure":
                    self._failures[place] = self._failures.get(place, 0) + 1
                    self.account.calls += line["tries"]
                case "review":
                    self._reviews[place] = parse(Review, line["review"])
        except (KeyError, TypeError, UserError) as error:
            raise UserError(
                f"{path}: the line {line['key']!r} is damaged ({error}); restore the file, or "
                "name a new directory with --out"
            ) from error


def _place(task: str, sample: int, turn: int) -> dict[str, Any]:
    return {"task": task, "sample": sample, "round": turn}


def _kept(line: dict[str, Any]) -> dict[str, Any]:
    """What of a line stays in memory: not the conversation, whose size alone matters."""
    wanted = ("key", "kind", "task", "sample", "round", "tries", "reply", "review")
    kept = {name: line[name] for name in wanted if name in line}
    messages = line.get("messages")
    said = [m for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []
    contents = [str(m.get("content")) for m in said]
    # The second message, after the system's, puts the task.
    kept["brief"] = _hash(contents[1]) if len(contents) > 1 else None
    kept["asked"] = sum(byte_count(c) for c in contents)
    return kept


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
