"""Eager PyTorch timed against itself: what came of each shape."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltruth.clock.outcome import HOST_BOUND, NOT_GRADED, PROCESSES_DIFFER, contradicts
from kerneltruth.clock.statistics.summary import is_wide
from kerneltruth.documents.timing import CandidateTimes, ShapeTimes
from kerneltruth.engine.benchmark.setup import PYTORCH_TOO

EAGER = "eager"
# Outcomes that are no fault of the clock, if a reason is given.
STATED = frozenset(
    {"no_valid_baseline", "not_graded", "unsupported_here", HOST_BOUND, PROCESSES_DIFFER}
)
# Outcomes that may differ the next time; others would only repeat.
RETIMED = frozenset({"faster", "slower", "unresolved", "suspect"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedShape:
    """How PyTorch's function stands against itself on one shape.

    Attributes:
        shape: empty where the task could not be timed at all.
        outcome: `tie`; or `faster`, `slower`, `unresolved` (a tie of a wider interval), `suspect`,
            `wrong`, `void` (as a candidate it would be wrong), `failed`, and those of `STATED`.
        why: of all but `tie`.
        again: whether it was timed once more.
    """

    task: str
    shape: str
    outcome: str
    why: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    us: float | None = None
    efficiency: float | None = None
    again: bool = False


def shapes_of(task: str, document: CandidateTimes, *, again: bool = False) -> list[AuditedShape]:
    """Return the outcome of each shape, from the times of a task's function."""
    found = [_shape(task, shape, again=again) for shape in document.shapes or ()]
    if document.outcome in ("failed", "unsupported_here"):
        why = document.detail or ""
        outcome = "no_valid_baseline" if "no valid baseline" in why else document.outcome
        found.append(AuditedShape(task=task, shape="", outcome=outcome, why=why, again=again))
    return found


def _shape(task: str, shape: ShapeTimes, *, again: bool) -> AuditedShape:
    outcome, why = _outcome(shape)
    b = shape.baselines.get(EAGER)
    return AuditedShape(
        task=task,
        shape=shape.summary,
        outcome=outcome,
        why=why,
        ratio=None if b is None else b.ratio,
        low=None if b is None else b.low,
        high=None if b is None else b.high,
        us=None if b is None else b.us,
        efficiency=None if b is None else b.efficiency,
        again=again,
    )


def _outcome(shape: ShapeTimes) -> tuple[str, str]:
    flags = ", ".join(shape.flags)
    if shape.graded.wrong:
        return "wrong", shape.graded.wrong[0]
    if contradicts(shape.flags):
        return "suspect", flags
    if EAGER not in shape.baselines:
        return "no_valid_baseline", shape.baselines_failed.get(EAGER, "it could not be timed")
    if (shape.graded.not_graded or "").startswith(PYTORCH_TOO):
        return "void", shape.graded.not_graded or ""
    b = shape.baselines[EAGER]
    said = f"{b.ratio:.4f} ({b.low:.4f} to {b.high:.4f}){f'; {flags}' if flags else ''}"
    if b.outcome != "tie":
        return b.outcome, said
    for stated in (HOST_BOUND, PROCESSES_DIFFER):
        if stated in shape.flags:
            return stated, said
    if is_wide(b.low, b.high):
        return "unresolved", said
    if NOT_GRADED in shape.flags:
        return "not_graded", shape.graded.not_graded or "no call was graded"
    return "tie", ""


def better(before: list[AuditedShape] | None, now: list[AuditedShape]) -> list[AuditedShape]:
    """Shapes of both passes; ties of the first pass stay ties."""
    merged = {s.shape: s for s in before or ()}
    ties = {name for name, s in merged.items() if s.outcome == "tie"}
    merged |= {s.shape: s for s in now if s.shape not in ties}
    return list(merged.values())
