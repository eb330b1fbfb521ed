"""What benchmarks on a task's shapes come to: the times of a candidate, and their outcome."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import UNSET, UnsetType, structs

from kerneltruth.clock.integrity.valid_baselines import NotValid
from kerneltruth.clock.protocol.sides import SideError
from kerneltruth.documents.timing import CandidateTimes, ShapeTimes, TimeOutcome
from kerneltruth.engine.benchmark.baselines import CANDIDATE
from kerneltruth.engine.benchmark.shape_document import CONTRADICTED, FinishedBenchmark
from kerneltruth.engine.benchmark.task_baselines import TaskBaselines


@dataclass(slots=True, kw_only=True)
class Measured:
    """What benchmarks on the task's shapes have shown, until one failed."""

    benchmarks: list[FinishedBenchmark] = field(default_factory=list)
    outcome: TimeOutcome = "timed"
    detail: str | UnsetType = UNSET
    costs: Costs | None = None

    def stop(self, error: SideError, shape: str) -> None:
        """Note that the candidate could not be timed on a shape, and why."""
        unsupported = error.seen.ended == "unsupported"
        self.outcome = "unsupported_here" if unsupported else "failed"
        self.detail = f"{shape}: {_reason(error)}"[:400]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a candidate costs before and around its steady state."""

    import_s: float | None
    first_call_s: float
    compile_s: float
    launch_us: float | None


def times_of(
    measured: Measured, shapes: list[ShapeTimes], task_baselines: TaskBaselines, *, ready_s: float
) -> CandidateTimes:
    """Return what was measured, before beaten baselines are timed again.

    Args:
        measured: the benchmarks.
        shapes: what each has shown.
        task_baselines: of the task, with the seconds that they took.
        ready_s: seconds in which baselines got ready; the first task of a part has those of all.
    """
    peaks = [{s.name: s.peak_bytes for s in f.benchmark.sides} for f in measured.benchmarks]
    others = dict.fromkeys(name for p in peaks for name in p if name != CANDIDATE)
    costs = measured.costs
    return CandidateTimes(
        outcome=measured.outcome,
        shapes=tuple(shapes),
        import_s=UNSET if costs is None else costs.import_s,
        first_call_s=UNSET if costs is None else costs.first_call_s,
        compile_s=UNSET if costs is None else costs.compile_s,
        launch_us=UNSET if costs is None else costs.launch_us,
        detail=measured.detail,
        ready_s=ready_s,
        ready=dict(task_baselines.spent),
        not_timed=tuple(task_baselines.left_out),
        noise_floor=max((s.noise_floor for s in shapes), default=0.0),
        peak_bytes=max((p[CANDIDATE] for p in peaks), default=0),
        baseline_peak_bytes={name: max(p.get(name, 0) for p in peaks) for name in others},
    )


def concluded(document: CandidateTimes, shapes: list[ShapeTimes]) -> CandidateTimes:
    """Return the document with its final shapes, and the outcome that follows from them."""
    wrong = next((s for s in shapes if s.graded.wrong), None)
    if wrong is not None:
        said = f"{wrong.summary}: {wrong.graded.wrong[0]}"
        # Whatever took so long, it was not the task.
        slow = tuple(map(_without_gains, shapes))
        return structs.replace(document, outcome="wrong", detail=said, shapes=slow)
    contradicted = any(CONTRADICTED & {*s.flags} for s in shapes)
    outcome = "timing_suspect" if contradicted else document.outcome
    return structs.replace(document, outcome=outcome, shapes=tuple(shapes))


def _without_gains(shape: ShapeTimes) -> ShapeTimes:
    return structs.replace(
        shape,
        baselines={
            name: structs.replace(b, outcome="tie" if b.outcome == "faster" else b.outcome)
            for name, b in shape.baselines.items()
        },
    )


def _reason(error: SideError) -> str:
    """Return why a candidate could not be timed to the end."""
    seen = error.seen
    said = " ".join(text for text in (seen.error, seen.message) if text)
    said = ": ".join(text for text in (seen.ended, said) if text)
    return str(error) if isinstance(error, NotValid) else said
