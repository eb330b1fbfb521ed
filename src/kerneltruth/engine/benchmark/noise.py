"""How far the ratio of a kernel to a copy of itself is from 1 on a machine."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from statistics import median

from kerneltruth.cases.philox import stream
from kerneltruth.clock.device.telemetry import Telemetry
from kerneltruth.clock.integrity.disturbance import DisturbanceDetector
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.protocol.sides import Side
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.clock.statistics.summary import Block, Interval, noise_floor, ratio_interval
from kerneltruth.engine.benchmark.memory import limit_memory, memory_of
from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.host import Runner
from kerneltruth.suites.pytorch import eager_of
from kerneltruth.tasks.registry import find

# Kernels whose copies are timed against each other, with the shape: those that take few
# microseconds, where noise has other reasons, and longer ones.
NULL_KERNELS = (
    (("kernelbenchx/relu", 0), ("kernelbenchx/softmax", 0)),
    (
        ("kernelbenchx/matmul_fp16", 1),
        ("kernelbenchx/add", 1),
        ("kernelbenchx/softmax", 1),
        ("kernelbenchx/matmul", 1),
    ),
)
NULL_COPIES = 6
# No machine counts as quieter than this: a few dozen pairs may look quiet where the next ones are
# not. `benchmarks/clock_null.py` shows how many null pairs contain 1 with it.
LEAST_NOISE = 0.003
NULL_EFFORT = Effort(blocks=(16, 16), budget_s=0.0, memory_bytes=3 * 2**30, shown=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How far the ratio of two copies of one kernel is from 1 on this machine.

    Attributes:
        seconds: of a call of the shortest of these kernels.
        half_width: what intervals lack without it, in logs, beyond what their scatter tells.
    """

    seconds: float
    half_width: float
    pairs: int


def measure_noise(runner: Runner, telemetry: Telemetry) -> tuple[Noise, ...]:
    """Kernels against copies of themselves, each copy in a process of its own.

    What was disturbed is no noise of the machine: blocks are repeated as always.
    """
    found = []
    for kernels in NULL_KERNELS:
        benchmarks = [_null_contest(runner, telemetry, *kernel) for kernel in kernels]
        null = [interval for benchmark in benchmarks for interval in _null_intervals(benchmark)]
        shortest = min(
            median(batch.per_call_s for block in benchmark.blocks for batch in block["0"])
            for benchmark in benchmarks
        )
        half_width = max(noise_floor(null), LEAST_NOISE)
        found.append(Noise(seconds=shortest, half_width=half_width, pairs=len(null)))
    return tuple(found)


def _null_contest(
    runner: Runner, telemetry: Telemetry, name: str, shape: int
) -> InterleavedBenchmark:
    task = find(name)
    source = eager_of(task)
    if source is None:
        raise EnvironmentFault(f"{name} has no eager function to measure noise with")
    sessions = [runner.open(source, mode="time") for _ in range(NULL_COPIES)]
    sides = [Side(name=f"{i}", child=child) for i, child in enumerate(sessions)]
    try:
        benchmark = InterleavedBenchmark(
            sides=sides,
            inputs=make_bench_inputs(task, timed_cases(task)[shape], device=runner.device),
            effort=limit_memory(NULL_EFFORT, memory_of(runner.device).total, len(sessions)),
            rng=stream(0, "noise", name, str(shape)),
        )
        benchmark.prepare()
        benchmark.run(lambda c: False, DisturbanceDetector(telemetry))
    finally:
        # Kernels that end on the device disturb the next timing.
        for session in sessions:
            session.close()
    return benchmark


def _null_intervals(benchmark: InterleavedBenchmark) -> list[Interval]:
    names = [side.name for side in benchmark.sides]
    return [
        ratio_interval(
            [
                Block(
                    candidate_s=tuple(batch.per_call_s for batch in block[one]),
                    baseline_s=tuple(batch.per_call_s for batch in block[other]),
                )
                for block in benchmark.blocks
            ],
            # What the scatter tells is not measured once more.
            noise_floor=0.0,
        )
        for one, other in itertools.combinations(names, 2)
    ]
