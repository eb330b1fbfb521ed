"""The documents of `time --json`: a finished benchmark's shape, and a candidate's times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from msgspec import structs

from kerneltruth.clock.comparison import (
    Comparison,
    candidate_times,
    comparisons,
    confirmed,
    waits_for_hosts,
)
from kerneltruth.clock.integrity.suspicion import is_suspect
from kerneltruth.clock.integrity.valid_baselines import NotValid
from kerneltruth.clock.protocol.sides import Side, SideError
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.clock.schedule.confirmation import retime_baselines
from kerneltruth.documents.model import model_of
from kerneltruth.documents.records import BinaryRecord
from kerneltruth.documents.timing import AloneTimes, BaselineTime, CandidateTimes, ShapeTimes
from kerneltruth.engine.benchmark.baselines import CANDIDATE
from kerneltruth.engine.benchmark.machine import DeviceWatch, Machine
from kerneltruth.engine.benchmark.setup import TimingSetup
from kerneltruth.engine.benchmark.task_baselines import TaskBaselines
from kerneltruth.runner.observation import Binary
from kerneltruth.runner.protocol import Loaded

# Flags of times that contradict each other: such a candidate is never called faster. A baseline is
# hindered if it runs faster once the candidate is gone.
CONTRADICTED = frozenset({"timing_suspect", "below_floor", "baseline_hindered"})
# The flag of times that measure the host.
HOST_BOUND = "host_bound"
# The flag of times that differ between processes by more than batches within one.
PROCESSES_DIFFER = "processes_differ"
# The flag of a shape with unknown results: no candidate is called faster on it either.
NOT_GRADED = "not_graded"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedBenchmark:
    """A benchmark that was run to its end.

    Attributes:
        setup: of the benchmark; knows what the shown results must be.
        watch: saw what disturbed it.
        kernels: static facts of the Triton kernels that each side has compiled so far.
        again: the same in other processes, against baselines that are nearly as quick.
    """

    setup: TimingSetup
    benchmark: InterleavedBenchmark
    watch: DeviceWatch
    kernels: tuple[tuple[Binary, ...], ...]
    again: InterleavedBenchmark | None = None


def finished(
    setup: TimingSetup, benchmark: InterleavedBenchmark, watch: DeviceWatch
) -> FinishedBenchmark:
    """Collect what remains of a benchmark; call it while the children are still there."""
    kernels = tuple(_binaries(side) for side in benchmark.sides)
    return FinishedBenchmark(setup=setup, benchmark=benchmark, watch=watch, kernels=kernels)


def shape_document(found: FinishedBenchmark, *, machine: Machine) -> ShapeTimes:
    """Return a benchmark's results on one shape; `machine` gives noise and limits."""
    setup, benchmark, watch, kernels = found.setup, found.benchmark, found.watch, found.kernels
    own = candidate_times(benchmark)
    noise = machine.noise_floor(own.estimate)
    first = comparisons(benchmark, noise_floor=noise)
    against = _confirmed(first, found.again, noise)
    # Otherwise its host was ahead of the device, and no figure contains the launch.
    launch_s = benchmark.sides[0].launch_s if benchmark.sides[0].waits else None
    limits = machine.limits(setup.task, setup.case, own.estimate, launch_s, binaries=kernels[0])
    seen = (*limits.flags, *watch.flags(benchmark))
    graded = setup.graded(benchmark)
    differ = any(s.outcome != f.outcome for s, f in zip(against, first, strict=True))
    doubts = {
        HOST_BOUND: any(waits_for_hosts(benchmark, side) for side in benchmark.sides[1:]),
        PROCESSES_DIFFER: differ,
        "timing_suspect": is_suspect(benchmark),
        NOT_GRADED: graded.not_graded,
    }
    holding = (flag for flag, holds in doubts.items() if holds)
    flags = tuple(dict.fromkeys([*seen, *holding]))
    not_faster = not {*flags}.isdisjoint({*CONTRADICTED, NOT_GRADED})
    return ShapeTimes(
        case=setup.case,
        summary=setup.case.summary(),
        candidate_us=own.estimate * 1e6,
        candidate_low=own.low * 1e6,
        candidate_high=own.high * 1e6,
        method="graph" if benchmark.graphs else "calls",
        regime="cold" if benchmark.on_gpu else "cpu",
        warm_us=_us(benchmark.sides[0].warm_s),
        blocks=len(benchmark.blocks),
        noise_floor=noise,
        baselines={
            s.baseline: _baseline_time(s, side, setup, machine, not_faster=not_faster)
            for s, side in zip(against, benchmark.sides[1:], strict=True)
        },
        baselines_failed=dict(setup.failed),
        efficiency=limits.efficiency,
        floor_us=limits.floor_us,
        bound_by=limits.bound_by,
        bytes=limits.bytes,
        flops=limits.flops,
        advice=limits.advice,
        graded=graded,
        not_captured=benchmark.why_not_captured,
        kernels={
            side.name: tuple(model_of(BinaryRecord, each) for each in binaries)
            for side, binaries in zip(benchmark.sides, kernels, strict=True)
            if binaries
        },
        repeated=tuple(benchmark.disturbed),
        conditions=watch.conditions(),
        flags=flags,
    )


def _baseline_time(
    s: Comparison, side: Side, setup: TimingSetup, machine: Machine, *, not_faster: bool
) -> BaselineTime:
    limit = machine.baseline(setup.task, setup.case, side, s.baseline_s)
    return BaselineTime(
        us=s.baseline_s * 1e6,
        warm_us=_us(side.warm_s),
        ratio=s.ratio.estimate,
        low=s.ratio.low,
        high=s.ratio.high,
        outcome="tie" if not_faster and s.outcome == "faster" else s.outcome,
        efficiency=limit.efficiency,
        launches=limit.launches,
        remark=limit.remark,
    )


def _confirmed(
    first: tuple[Comparison, ...], again: InterleavedBenchmark | None, noise: float
) -> tuple[Comparison, ...]:
    seen = {s.baseline: s for s in comparisons(again, noise_floor=noise)} if again else {}
    return tuple(confirmed(s, seen[s.baseline]) if s.baseline in seen else s for s in first)


def _binaries(side: Side) -> tuple[Binary, ...]:
    if side.ran is not None and side.compiled is None:
        # Eager PyTorch: looking for them takes longer than many batches.
        return ()
    seen = side.child.request(Loaded())
    return seen.binaries if seen.ended == "returned" else ()


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6


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
    measured: Measured, shapes: list[ShapeTimes], task_baselines: TaskBaselines, *, ready_s: float
) -> CandidateTimes:
    """Return what was measured, before beaten baselines are timed again.

    Baselines got ready in `ready_s`; the first task of a part carries the seconds of all.
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
    if any(CONTRADICTED & {*s.flags} for s in shapes):
        slow = tuple(map(_without_gains, shapes))
        return structs.replace(document, outcome="timing_suspect", shapes=slow)
    return structs.replace(document, shapes=tuple(shapes))


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
    wait_for_end: Callable[[], None],
) -> ShapeTimes:
    """Time beaten baselines of a shape again; `wait_for_end` returns once the candidate ended."""
    # Baselines that restarted at a later shape have no buffers for this one any more.
    there = {side.name for side in benchmark.sides if side.buffers}
    beaten = [n for n, b in shape.baselines.items() if b.outcome == "faster" and n in there]
    if not beaten:
        return shape
    wait_for_end()
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
