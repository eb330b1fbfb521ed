"""Answer offline from recorded replies.

A recording is JSON lines with an object each: `task`, `sample` and `round` (0 by default), the
reply's `text`, and optionally `finish`, `usage`, `reasoning` and `model`; a diagnosis of that
round has `kind`: `diagnosis`. A generation's transcript (`exchanges.jsonl`) is also a recording.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from kerneltruth.documents.model import parse
from kerneltruth.errors import UserError
from kerneltruth.generate.chat import ApiError, FailureScope, Part, Reply, Request
from kerneltruth.generate.transcript import TRANSCRIPT

PREFIX = "replay:"


ReplyPlace = tuple[str, int, int, Part]


class Recording:
    """A model whose answers were recorded; deterministic, and free."""

    def __init__(self, replies: Mapping[ReplyPlace, Reply], label: str) -> None:
        self._replies = dict(replies)
        self._label = label

    @property
    def label(self) -> str:
        """Return the recorded model, or the name of the file."""
        return self._label

    @property
    def tasks(self) -> frozenset[str]:
        """Return the tasks with recorded replies, as the recording names them."""
        return frozenset(task for task, _, _, _ in self._replies)

    async def call(self, request: Request) -> Reply | ApiError:
        """Return the recorded reply for that task, sample and round."""
        for name in (request.task, request.task.partition("/")[2]):
            reply = self._replies.get((name, request.sample, request.round, request.part))
            if reply is not None:
                return reply
        # A chain that was recorded to its end has no further reply.
        begun = request.round or request.part != "answer"
        scope: FailureScope = "chain" if begun else "request"
        return ApiError(scope=scope, detail=f"no reply is recorded for {request.key}")

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def read_recording(path: Path) -> Recording:
    """Read a recording from a file, or from the transcript in a generation's directory.

    Raises:
        UserError: it cannot be read, or a line of it is not a reply.
    """
    file = path / TRANSCRIPT if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise UserError(
            f"--model {PREFIX}{path}: cannot read {file}: {reason}; name a file of recorded replies"
        ) from error
    replies: dict[ReplyPlace, Reply] = {}
    labels: set[str] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        data = _object(line, where)
        if (part := data.get("kind", "answer")) not in get_args(Part):
            continue
        key, reply = _reply(data, where, part)
        if key in replies:
            raise UserError(
                f"{where}: a second {part} for {key[0]!r}, sample {key[1]}, round {key[2]}; "
                "keep one"
            )
        replies[key] = reply
        labels |= {reply.model} if reply.model else set()
    if not replies:
        raise UserError(
            f"--model {PREFIX}{path}: no replies in it; give each a line with `task` and `text`"
        )
    return Recording(replies, labels.pop() if len(labels) == 1 else file.stem)


def _object(line: str, where: str) -> Mapping[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON: {error}; correct the line") from error
    if not isinstance(data, dict):
        raise UserError(f"{where}: not an object but {type(data).__name__}")
    return data


def _reply(data: Mapping[str, Any], where: str, part: Part) -> tuple[ReplyPlace, Reply]:
    said = data.get("reply", data)
    task, sample, turn = data.get("task"), data.get("sample", 0), data.get("round", 0)
    named = isinstance(task, str) and task.strip()
    if not named or not isinstance(said, Mapping) or not isinstance(said.get("text"), str):
        raise UserError(f"{where}: a recorded reply needs `task` and `text`, both strings")
    if type(sample) is not int or type(turn) is not int or min(sample, turn) < 0:
        raise UserError(f"{where}: `sample` and `round` must be whole numbers from 0")
    try:
        return (str(task).strip(), sample, turn, part), parse(Reply, said)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
