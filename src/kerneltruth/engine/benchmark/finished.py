"""A benchmark that was run to its end, with what only its children can tell."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from kerneltruth.clock.protocol.sides import Side
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.documents.timing import ShapeEnergy
from kerneltruth.engine.benchmark.machine import DeviceWatch
from kerneltruth.engine.benchmark.setup import TimingSetup
from kerneltruth.runner.observation import Binary
from kerneltruth.runner.protocol import Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedBenchmark:
    """A benchmark that was run to its end.

    Attributes:
        setup: of the benchmark; knows what the shown results must be.
        watch: saw what disturbed it.
        kernels: static facts of the Triton kernels that each side has compiled so far.
        energy: of the calls of all sides, where it was asked for.
        confirmation: the same in other processes, against baselines that are nearly as quick.
    """

    setup: TimingSetup
    benchmark: InterleavedBenchmark
    watch: DeviceWatch
    kernels: tuple[tuple[Binary, ...], ...]
    energy: ShapeEnergy | UnsetType = UNSET
    confirmation: InterleavedBenchmark | None = None


def finished(
    setup: TimingSetup, benchmark: InterleavedBenchmark, watch: DeviceWatch
) -> FinishedBenchmark:
    """Collect what remains of a benchmark; call it while the children are still there."""
    kernels = tuple(_binaries(side) for side in benchmark.sides)
    return FinishedBenchmark(setup=setup, benchmark=benchmark, watch=watch, kernels=kernels)


def _binaries(side: Side) -> tuple[Binary, ...]:
    if side.ran is not None and side.compiled is None:
        # Eager PyTorch: looking for them takes longer than many batches.
        return ()
    seen = side.child.request(Loaded())
    return seen.binaries if seen.ended == "returned" else ()
