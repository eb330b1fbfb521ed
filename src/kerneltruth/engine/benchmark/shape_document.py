"""A finished benchmark as a part of the document of `time --json`."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltruth.clock.comparison import (
    Comparison,
    candidate_times,
    comparisons,
    confirmed,
    waits_for_hosts,
)
from kerneltruth.clock.integrity.suspicion import is_suspect
from kerneltruth.clock.protocol.sides import Side
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.documents.model import model_of
from kerneltruth.documents.records import BinaryRecord
from kerneltruth.documents.timing import BaselineTime, ShapeTimes
from kerneltruth.engine.benchmark.machine import DeviceWatch, Machine
from kerneltruth.engine.benchmark.setup import TimingSetup
from kerneltruth.runner.protocol import Binary, Loaded

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
    flags = list(dict.fromkeys([*limits.flags, *watch.flags(benchmark)]))
    if any(waits_for_hosts(benchmark, side) for side in benchmark.sides[1:]):
        flags.append(HOST_BOUND)
    if any(s.outcome != f.outcome for s, f in zip(against, first, strict=True)):
        flags.append(PROCESSES_DIFFER)
    if is_suspect(benchmark):
        flags.append("timing_suspect")
    graded = setup.graded(benchmark)
    if graded.not_graded:
        flags.append(NOT_GRADED)
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
        flags=tuple(flags),
    )


def _baseline_time(
    s: Comparison, side: Side, setup: TimingSetup, machine: Machine, *, not_faster: bool
) -> BaselineTime:
    near = machine.baseline(setup.task, setup.case, side, s.baseline_s)
    return BaselineTime(
        us=s.baseline_s * 1e6,
        warm_us=_us(side.warm_s),
        ratio=s.ratio.estimate,
        low=s.ratio.low,
        high=s.ratio.high,
        outcome="tie" if not_faster and s.outcome == "faster" else s.outcome,
        efficiency=near.efficiency,
        launches=near.launches,
        remark=near.remark,
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
