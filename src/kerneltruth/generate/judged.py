"""Turn an attempt into the review that the model gets."""

from __future__ import annotations

import re

import torch

from kerneltruth.cases.materialize import materialize
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Attempt
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.engine.outcomes import call_stage
from kerneltruth.generate.example import shown
from kerneltruth.generate.review import Review, timings_of
from kerneltruth.tasks.model import Task

# Counterexamples up to this many elements show numbers; larger ones show shapes.
MOST_NUMBERS = 32
# Variations of a task have names that the candidate does not know.
_HIDDEN_NAME = re.compile(r" = _\w+")


def review_of(task: Task, attempt: Attempt, perf: CandidateTimes | None) -> Review:
    """Return the review of an attempt.

    Args:
        task: the task of the attempt.
        attempt: with its smallest failing case and its explanation.
        perf: its perf stage, if it was timed.
    """
    reached = "call" if call_stage(attempt).outcome != "pass" else "exe"
    if perf is not None and perf.outcome == "wrong":
        # Right on every judged case, and wrong at a timed size.
        return Review(
            outcome="fail",
            stage="perf",
            kind="value",
            detail=perf.detail or "",
            explanation="It is right on small inputs, and wrong at a shape at which it is timed.",
            passed=attempt.cases,
            cases=attempt.cases,
        )
    return Review(
        outcome=attempt.verdict.word,
        stage="perf" if reached == "exe" and perf is not None else reached,
        kind=getattr(attempt.verdict, "kind", None),
        detail=_detail(attempt),
        explanation=_HIDDEN_NAME.sub("", attempt.explanation),
        counterexample="" if attempt.minimal is None else counterexample(task, attempt.minimal),
        passed=attempt.cases - attempt.failed,
        cases=attempt.cases,
        timings=timings_of(perf),
    )


def counterexample(task: Task, case: Case) -> str:
    """Describe a failing call: its arguments, with numbers if these are few."""
    inputs = materialize(task, case)
    tensors = [t for t in inputs.tensors.values() if t is not None]
    small = sum(t.numel() for t in tensors) <= MOST_NUMBERS
    lines = [f"    {n} = {_argument(v, small)}" for n, v in inputs if not n.startswith("_")]
    if not small:
        lines.append(f"    (values: {case.recipe.replace('_', ' ')})")
    if case.layout != "contiguous":
        lines.append(f"    (the tensors are not contiguous in memory: {case.layout})")
    return "\n".join(lines)


def _argument(value: object, small: bool) -> str:
    if isinstance(value, torch.Tensor):
        kind = f"{str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
        return f"{shown(value)}, a {kind}" if small else f"a {kind}"
    if isinstance(value, list):
        return "[" + ", ".join(_argument(v, small) for v in value) + "]"
    return repr(value)


def _detail(attempt: Attempt) -> str:
    """Return the verdict's reason."""
    error = getattr(attempt.verdict, "error", "")
    text = next(
        (str(t) for n in ("detail", "reason") if (t := getattr(attempt.verdict, n, None))), ""
    )
    return f"{error}: {text}" if error and text else error or text
