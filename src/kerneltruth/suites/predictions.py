"""Read prediction files of KernelBenchX and TritonBench: JSON lines with an answer each.

A line's `predict` holds the answer; its task is the stem of `file`, else the wrapper's entry in the
instruction. Labels may stand beside it under their own names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from kerneltruth.documents.lines import Labels
from kerneltruth.suites.lines import json_lines
from kerneltruth.suites.replies import code_of
from kerneltruth.suites.submission import MAX_SOURCE_BYTES, Broken, Read, Submission

_ANSWERS = ("predict", "prediction", "code", "response")
_PROMPT_FIELDS = ("instruction", "prompt")
_ENTRY = re.compile(r"Wrapper Entry Information:\s*`*\s*(def\s+)?((?:\w+\.)*(\w+))(\s*)\(")


def read_predictions(path: Path, origin: str) -> Iterator[Read]:
    """Yield the submissions of a prediction file."""
    for item in json_lines(path, origin):
        yield item if isinstance(item, Broken) else _submission(*item)


def _submission(where: str, line: Mapping[str, object]) -> Read:
    answer = next((line[k] for k in _ANSWERS if k in line), None)
    if isinstance(answer, list) and answer:
        answer = answer[0]
    if not isinstance(answer, str):
        return Broken(origin=where, reason=f"no answer: needs one of {', '.join(_ANSWERS)}")
    if len(answer) > MAX_SOURCE_BYTES:
        reason = f"an answer of {len(answer)} characters; at most {MAX_SOURCE_BYTES} are read"
        return Broken(origin=where, reason=reason)
    name = _task_name(line)
    if name is None:
        reason = "no task: needs `file`, or an instruction with `Wrapper Entry Information`"
        return Broken(origin=where, reason=reason)
    return Submission(
        origin=where,
        name=name,
        source=code_of(answer),
        entry=_requested_entry(line),
        labels=labels_of(line),
    )


def _task_name(line: Mapping[str, object]) -> str | None:
    for named in _texts(line, ("file", "filename", "task")):
        if named.strip():
            return PurePosixPath(named.strip()).name.removesuffix(".py")
    for prompt in _texts(line, _PROMPT_FIELDS):
        if found := _ENTRY.search(prompt):
            return found[3]
    return None


def _texts(line: Mapping[str, object], keys: Sequence[str]) -> Iterator[str]:
    """Yield the values of these keys that are text."""
    return (value for key in keys if isinstance(value := line.get(key), str))


def _requested_entry(line: Mapping[str, object]) -> str | None:
    """Return the function that the prompt asks for; "" if it describes arguments alone.

    A dotted name (`linalg.eig`) cannot be defined as printed: its dots become underscores.
    """
    for prompt in _texts(line, _PROMPT_FIELDS):
        found = _ENTRY.search(prompt)
        if found is None:
            return None
        _, dotted, _, space = found.groups()
        # `input (Tensor): the input` describes an argument, and names no function.
        described = bool(space) and found[1] is None
        return "" if described else dotted.replace(".", "_")
    return None


def labels_of(line: Mapping[str, object]) -> Labels:
    """Return the labels that an object gives under their own names; ignore others."""
    method, model = (next(_texts(line, (key,)), None) for key in ("method", "model"))
    sample, sample_id, round_ = map(_whole, map(line.get, ("sample", "sample_id", "round")))
    return Labels(
        method=method, model=model, sample=sample_id if sample is None else sample, round=round_
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
