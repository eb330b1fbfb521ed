"""What benchmarks on a task's shapes come to: the times of a candidate, and their outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from msgspec import structs

from kerneltruth.clock.integrity.valid_baselines import NotValid
from kerneltruth.clock.protocol.sides import Side, SideError
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.clock.schedule.confirmation import retime_baselines
from kerneltruth.documents.timing import AloneTimes, CandidateTimes, ShapeTimes
from kerneltruth.engine.benchmark.baselines import CANDIDATE
from kerneltruth.engine.benchmark.machine import Machine
from kerneltruth.engine.benchmark.shape_document import (
    CONTRADICTED,
    FinishedBenchmark,
)
from kerneltruth.engine.benchmark.task_baselines import TaskBaselines


@dataclass(slots=True, kw_only=True)
class Measured:
    """What benchmarks on the task's shapes have shown, until one failed.

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
    measured: Measured, shapes: list[ShapeTimes], task_baselines: TaskBaselines, *, ready_s: float
) -> CandidateTimes:
    """Return what was measured, before beaten baselines are timed again.

    Baselines got ready in `ready_s`; the first task of a part has those of all.
    """
    peaks = [{s.name: s.peak_bytes for s in f.benchmark.sides} for f in measured.benchmarks]
    others = dict.fromkeys(name for p in peaks for name in p if name != CANDIDATE)
    return structs.replace(
        measured.times,
        shapes=tuple(shapes),
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
    seen = error.seen
    said = " ".join(text for text in (seen.error, seen.message) if text)
    said = ": ".join(text for text in (seen.ended, said) if text)
    return str(error) if isinstance(error, NotValid) else said


def retimed(
    shape: ShapeTimes,
    benchmark: InterleavedBenchmark,
    machine: Machine,
    *,
    alone: Callable[[], None],
) -> ShapeTimes:
    """Time beaten baselines of a shape once more; `alone` waits until the candidate is gone."""
    # Baselines that restarted at a later shape have no buffers for this one any more.
    there = {side.name for side in benchmark.sides if side.buffers}
    beaten = [n for n, b in shape.baselines.items() if b.outcome == "faster" and n in there]
    if not beaten:
        return shape
    alone()
    watch = machine.watch()
    watch.disturbance()
    look = retime_baselines(benchmark, beaten, capped="power_capped" in shape.flags)
    watch.disturbance()
    alone_us = {name: median(seconds) * 1e6 for name, seconds in look.alone_s.items()}
    return structs.replace(
        shape,
        alone=AloneTimes(us=alone_us, conditions=watch.conditions()),
        baselines={
            name: structs.replace(b, outcome="tie") if name in look.hindered else b
            for name, b in shape.baselines.items()
        },
        flags=(*shape.flags, "baseline_hindered") if look.hindered else shape.flags,
    )
