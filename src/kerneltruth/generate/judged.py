"""Turn an attempt into the review that the model gets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import torch
from msgspec import UNSET

from kerneltruth.cases.materialize import materialize
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Attempt, ProfileEntry
from kerneltruth.engine.evaluator import Evaluation
from kerneltruth.generate.example import shown
from kerneltruth.generate.facts import facts_of
from kerneltruth.generate.review import Review, timings_of
from kerneltruth.oracle.decide import OR_WITHOUT
from kerneltruth.tasks.model import Task

# Counterexamples up to this many elements show numbers; larger ones show shapes.
MOST_NUMBERS = 32
# Names that the model does not get: of variations of a task, and of the judge's kinds of values.
_HIDDEN_NAMES = re.compile(r" = _\w+|, only these do: [\w, ]+")
_PROMISE: Mapping[str, str] = {
    "published": "the published sizes and values",
    "shapes": "other sizes",
    "values": "other finite values",
    "attributes": "other arguments",
    "dtypes": "other data types",
    "layouts": "inputs that are not contiguous",
    "specials": "NaN, infinities, extreme values",
    "empty": "a dim of 0",
    "gradients": "the gradient",
    "interface": "form of the results",
    "memory": "use of memory",
    "repeatable": "the same result again",
    "kernel": "the work is done by kernels of your own",
}


def review_of(task: Task, evaluation: Evaluation) -> Review:
    """Return the review of an evaluation, whose failure is explained."""
    attempt, perf = evaluation.attempt, evaluation.perf
    reached = "exe" if evaluation.returned else "call"
    if perf is not None and perf.outcome == "wrong":
        # Right on every judged case, and wrong at a timed size.
        return Review(
            outcome="fail",
            stage="perf",
            kind="value",
            detail=perf.detail or "",
            explanation="It is right on other inputs, and wrong at a shape at which it is timed.",
            passed=attempt.cases,
            cases=attempt.cases,
            seconds=_seconds(evaluation),
        )
    return Review(
        outcome=attempt.verdict.word,
        stage="perf" if reached == "exe" and perf is not None else reached,
        kind=getattr(attempt.verdict, "kind", None),
        detail=_detail(attempt),
        explanation=_HIDDEN_NAMES.sub("", attempt.explanation),
        broken=tuple(_broken(attempt.profile)),
        counterexample="" if attempt.minimal is None else counterexample(task, attempt.minimal),
        passed=attempt.cases - attempt.failed,
        cases=attempt.cases,
        timings=timings_of(perf),
        facts=facts_of(attempt.kernel, perf),
        seconds=_seconds(evaluation),
    )


def _seconds(evaluation: Evaluation) -> float:
    """Return what judging and timing took."""
    perf = evaluation.perf
    timed = 0.0 if perf is None or perf.seconds is UNSET else perf.seconds
    return evaluation.seconds + timed


def _broken(profile: Mapping[str, ProfileEntry]) -> Iterator[str]:
    """Name what is broken or refused, the worst first; a refusal beyond the contract harms none."""
    entries = [(key, e) for key, e in profile.items() if key != "kernel" or e.decisive]
    for status, decisive in (("broken", True), ("refused", True), ("broken", False)):
        for key, entry in entries:
            if (entry.status, entry.decisive) == (status, decisive):
                obligation, _, part = key.partition(".")
                named = part if obligation == "dtypes" else _PROMISE[obligation]
                yield f"- {obligation} ({named}): {_in_words(entry)}"


def _in_words(entry: ProfileEntry) -> str:
    verdict = entry.failure.verdict if entry.failure else None
    kind = getattr(verdict, "kind", None) or (verdict.word if verdict else entry.status)
    return f"{entry.status}, {kind.replace('_', ' ')}"


def counterexample(task: Task, case: Case) -> str:
    """Describe a failing call: its arguments, with numbers if these are few."""
    inputs = materialize(task, case)
    tensors = [t for t in inputs.tensors.values() if t is not None]
    small = sum(t.numel() for t in tensors) <= MOST_NUMBERS
    lines = [f"    {n} = {_argument(v, small)}" for n, v in inputs if not n.startswith("_")]
    if not small:
        lines.append(f"    (values: {_in_range(tensors)})")
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


def _in_range(tensors: Sequence[torch.Tensor]) -> str:
    """Describe values without naming how they are drawn: `from -3 to 89.5, with NaN`."""
    values = torch.cat(
        [
            t.detach().flatten().abs().double() if t.is_complex() else t.detach().flatten().double()
            for t in tensors
        ]
    )
    finite = values[values.isfinite()]
    said = f"from {finite.min():.4g} to {finite.max():.4g}" if finite.numel() else "none finite"
    said += ", with NaN" if values.isnan().any() else ""
    return said + (", with infinities" if values.isinf().any() else "")


def _detail(attempt: Attempt) -> str:
    error = getattr(attempt.verdict, "error", "")
    text = next(
        (str(t) for n in ("detail", "reason") if (t := getattr(attempt.verdict, n, None))), ""
    )
    text = text.removesuffix(OR_WITHOUT)
    return f"{error}: {text}" if error and text else error or text
