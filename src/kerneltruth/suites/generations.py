"""Read the directory that `generate` writes: its answers are submissions, its transcript is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from kerneltruth.documents.lines import PublishedVerdict, SpentRecord
from kerneltruth.documents.model import parse
from kerneltruth.errors import UserError
from kerneltruth.suites.lines import json_lines
from kerneltruth.suites.predictions import labels_of
from kerneltruth.suites.replies import code_of
from kerneltruth.suites.submission import MAX_SOURCE_BYTES, Broken, Read, Submission

MANIFEST = "generation.json"
ANSWERS = "answers.jsonl"


def is_generation(folder: Path) -> bool:
    """Return whether `generate` has written there."""
    return (folder / MANIFEST).is_file()


def read_generation(folder: Path, origin: str) -> Iterator[Read]:
    """Yield the answers of a generation, in the order of task, sample and round."""
    if not (folder / ANSWERS).is_file():
        yield Broken(origin=f"{origin}{MANIFEST}", reason="the generation has no answers yet")
        return
    for item in json_lines(folder / ANSWERS, f"{origin}{ANSWERS}"):
        yield item if isinstance(item, Broken) else _submission(*item)


def _submission(where: str, line: Mapping[str, object]) -> Read:
    task, reply, code = line.get("task"), line.get("predict"), line.get("code")
    if not isinstance(task, str) or not isinstance(reply if code is None else code, str):
        return Broken(origin=where, reason="no answer: needs `task`, and `predict` or `code`")
    source = code if isinstance(code, str) else code_of(str(reply))
    if len(source) > MAX_SOURCE_BYTES:
        return Broken(
            origin=where, reason=f"{len(source)} characters; at most {MAX_SOURCE_BYTES} are read"
        )
    try:
        peer = None if line.get("peer") is None else parse(PublishedVerdict, line["peer"])
        spent = None if line.get("spent") is None else parse(SpentRecord, line["spent"])
    except UserError as error:
        return Broken(origin=where, reason=f"`peer` or `spent`: {error}")
    return Submission(
        origin=where, name=task, source=source, labels=labels_of(line), peer=peer, spent=spent
    )
