"""The document of a candidate that was timed, from what was measured on its shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import structs

from kerneltruth.clock.integrity.valid_baselines import NotValid
from kerneltruth.clock.outcome import doubt_on_any_shape
from kerneltruth.clock.protocol.sides import Side, SideError
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.engine.benchmark.baselines import CANDIDATE
from kerneltruth.engine.benchmark.finished import FinishedBenchmark
from kerneltruth.engine.benchmark.measured_shape import MeasuredShape
from kerneltruth.engine.benchmark.task_baselines import TaskBaselines


@dataclass(slots=True, kw_only=True)
class Measured:
    """The results of benchmarks on the task's shapes, until one failed.

    Attributes:
        times: what is known of the candidate apart from them: how it ended, and its first calls.
    """

    benchmarks: list[FinishedBenchmark] = field(default_factory=list)
    times: CandidateTimes = field(default_factory=lambda: CandidateTimes(outcome="timed"))

    def stop(self, error: SideError, shape: str) -> None:
        """Note that the candidate could not be timed on a shape, and why."""
        unsupported = error.seen.ended == "unsupported"
        self.times = structs.replace(
            self.times,
            outcome="unsupported_here" if unsupported else "failed",
            detail=f"{shape}: {_reason(error)}"[:400],
        )

    def count_first_calls(self, side: Side, import_s: float | None, *, on_gpu: bool) -> None:
        """Note what the candidate's first calls cost."""
        self.times = structs.replace(
            self.times,
            import_s=import_s,
            first_call_s=side.first_s,
            compile_s=max(side.first_s - side.second_s, 0.0),
            launch_us=side.launch_s * 1e6 if on_gpu else None,
        )


def times_of(
    measured: Measured,
    shapes: Sequence[MeasuredShape],
    task_baselines: TaskBaselines,
    *,
    ready_s: float,
) -> CandidateTimes:
    """Return what was measured, but for the shapes: beaten baselines are timed again first.

    Baselines got ready in `ready_s`; the first task of a part carries the seconds of all.
    """
    peaks = [{s.name: s.peak_bytes for s in f.benchmark.sides} for f in measured.benchmarks]
    others = dict.fromkeys(name for p in peaks for name in p if name != CANDIDATE)
    return structs.replace(
        measured.times,
        ready_s=ready_s,
        ready=dict(task_baselines.spent),
        not_timed=tuple(task_baselines.left_out),
        noise_floor=max((s.times.noise_floor for s in shapes), default=0.0),
        peak_bytes=max((p[CANDIDATE] for p in peaks), default=0),
        baseline_peak_bytes={name: max(p.get(name, 0) for p in peaks) for name in others},
    )


def concluded(document: CandidateTimes, shapes: Sequence[MeasuredShape]) -> CandidateTimes:
    """Return the document with its shapes, and the outcome that follows from them.

    A candidate that could not be timed on every shape keeps its outcome.
    """
    doubt = None
    if document.outcome == "timed":
        wrong = next((s.times for s in shapes if s.times.graded.wrong), None)
        flags = (s.times.flags for s in shapes)
        doubt = doubt_on_any_shape(wrong=wrong is not None, flags=flags)
        if doubt is not None:
            said = f"{wrong.summary}: {wrong.graded.wrong[0]}" if wrong else document.detail
            document = structs.replace(document, outcome=doubt, detail=said)
    return structs.replace(document, shapes=tuple(s.document(doubt) for s in shapes))


def _reason(error: SideError) -> str:
    seen = error.seen
    said = " ".join(text for text in (seen.error, seen.message) if text)
    said = ": ".join(text for text in (seen.ended, said) if text)
    return str(error) if isinstance(error, NotValid) else said
