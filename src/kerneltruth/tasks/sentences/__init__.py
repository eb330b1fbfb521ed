"""The sentence of a published prompt that makes a promise.

`SUITE.json` holds them by task and subject. They are quoted from KernelBenchX and TritonBench, both
under the Apache License 2.0; `benchmarks/prompt_sentences.py` finds them. A task without a
published prompt promises what its own declaration says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kerneltruth.tasks.arguments import Scalar
from kerneltruth.tasks.model import BACKWARD, CALL, OUT, Task

FOLDER = Path(__file__).resolve().parent
QUOTED = ("kernelbenchx", "tritonbench")
_OF_CALL = {OUT: "argument out", BACKWARD: "gradients"}


def subject_of(task: Task, kind: str, name: str, value: Scalar = None) -> str:
    """Return what a sentence has to promise: `argument dim`, `dtype float16`, `gradients`.

    Args:
        task: of the promise.
        kind: of the promise; see `cases.promised.Promise`.
        name: of the dtype, attribute, tensor or layout.
        value: of an attribute.
    """
    if kind == "attribute" and name == CALL:
        return _OF_CALL.get(str(value), str(value))
    if kind == "attribute":
        given = task.given_by(name, value) if name.startswith("_") else ()
        return f"argument {next(iter(given), name)}"
    return f"{kind} {name}".strip()


def sentence_of(task: Task, kind: str, name: str, value: Scalar = None) -> str | None:
    """Return the sentence that makes a promise; None where no sentence does."""
    subject = subject_of(task, kind, name, value)
    if task.suite in QUOTED:
        return _quoted(task.suite).get(task.name, {}).get(subject)
    return None if task.foreign else _declared(task, subject)


def _declared(task: Task, subject: str) -> str | None:
    """Return what the declaration of one of our own tasks says."""
    kind, _, name = subject.partition(" ")
    if kind == "dtype":
        return f"Data types that must be served: {', '.join(task.promised_dtypes)}."
    word = re.escape("differentiable" if kind == "gradients" else name)
    said = (s for s in re.split(r"(?<=\.) ", task.description) if re.search(rf"\b{word}\b", s))
    signed = task.signature if re.search(rf"\b{word}\b", task.signature) else None
    return next(said, signed)


@cache
def _quoted(suite: str) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((FOLDER / f"{suite}.json").read_text("utf-8"))
    return found
