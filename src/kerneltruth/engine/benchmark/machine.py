"""Facts of the timing machine: its limits, its noise, and what disturbs it.

Limits and noise are measured once per device and driver, and kept beside the compiled kernels.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import torch
from msgspec import UNSET, UnsetType

from kerneltruth.cases.philox import stream
from kerneltruth.clock.comparison import HOST_NOISE
from kerneltruth.clock.device.ceilings import measure
from kerneltruth.clock.device.lock import device_for_timing
from kerneltruth.clock.device.nvml import open_telemetry
from kerneltruth.clock.device.telemetry import NoTelemetry, Telemetry
from kerneltruth.clock.integrity.disturbance import (
    HARMFUL,
    DisturbanceDetector,
    conditions,
)
from kerneltruth.clock.integrity.valid_baselines import host_bound, why_too_long
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.protocol.sides import Side
from kerneltruth.clock.roofline.advice import advise
from kerneltruth.clock.roofline.traffic import needed_bytes, output_bytes, output_shapes
from kerneltruth.clock.roofline.work import Ceilings, Floor, Limit, floor, impossible, limit_of
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.clock.statistics.summary import Block, Interval, noise_floor, ratio_interval
from kerneltruth.documents.case import Case
from kerneltruth.documents.model import content_hash, dumps, parse
from kerneltruth.documents.timing import Advice, ConditionsRecord, Regime
from kerneltruth.engine.benchmark.memory import limit_memory, memory_of
from kerneltruth.engine.devices import cache_root
from kerneltruth.engine.run_directory import environment
from kerneltruth.errors import UserError
from kerneltruth.runner.host import Runner
from kerneltruth.runner.observation import Binary
from kerneltruth.suites.pytorch import eager_of
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import Task

# Kernels whose copies are timed against each other, with the shape: kernels of a few microseconds,
# whose noise has other causes, and longer ones.
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
        half_width: how much wider intervals must be than their scatter says, in logs.
    """

    seconds: float
    half_width: float
    pairs: int


def measure_noise(runner: Runner, telemetry: Telemetry) -> tuple[Noise, ...]:
    """Kernels against copies of themselves, each copy in a process of its own.

    Disturbances are not the machine's noise: disturbed blocks are repeated as always.
    """
    found = []
    for kernels in NULL_KERNELS:
        benchmarks = [_null_benchmark(runner, telemetry, *kernel) for kernel in kernels]
        null = [interval for benchmark in benchmarks for interval in _null_intervals(benchmark)]
        shortest = min(
            median(batch.per_call_s for block in benchmark.blocks for batch in block["0"])
            for benchmark in benchmarks
        )
        half_width = max(noise_floor(null), LEAST_NOISE)
        found.append(Noise(seconds=shortest, half_width=half_width, pairs=len(null)))
    return tuple(found)


def _null_benchmark(
    runner: Runner, telemetry: Telemetry, name: str, shape: int
) -> InterleavedBenchmark:
    task = find(name)
    source = eager_of(task)
    assert source is not None
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
            # The scatter is not counted twice.
            noise_floor=0.0,
        )
        for one, other in itertools.combinations(names, 2)
    ]


SCHEMA = 7
# Where it was not measured.
USUAL_LAUNCH_S = 5e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """The measured facts of a device."""

    ceilings: Ceilings
    noise: tuple[Noise, ...]
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class NearLimit:
    """How near a time is to what the device can do; None where the device was not measured."""

    efficiency: float | None = None
    floor_us: float | None = None
    bound_by: Regime | None = None
    bytes: int | UnsetType = UNSET
    flops: float | UnsetType = UNSET
    advice: Advice | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineNearLimit:
    """The same for a baseline, with its launches and what is odd about its time."""

    efficiency: float | None = None
    launches: int | None = None
    remark: str | None = None


class DeviceWatch:
    """What disturbs a device while something is timed there."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.disturbance = DisturbanceDetector(telemetry)

    def flags(self, benchmark: InterleavedBenchmark) -> list[str]:
        """Return a benchmark's flags: repeated blocks, and remaining disturbances."""
        seen = self.conditions()
        flags = ["repeated_blocks"] if benchmark.disturbed else []
        if len(benchmark.disturbed) >= benchmark.effort.repeats:
            flags.append("disturbed")
        if seen is not None and {*seen.throttle} & {*HARMFUL}:
            flags.append("throttled")
        if seen is not None and "sw_power_cap" in seen.throttle:
            flags.append("power_capped")
        if seen is not None and seen.others:
            flags.append("shared_device")
        return flags

    def conditions(self) -> ConditionsRecord | None:
        """Return the device's clocks, temperature and power during the measurement."""
        return conditions(self.disturbance.readings)


@dataclass(slots=True, kw_only=True)
class Machine:
    """The machine as the benchmarker sees it; without facts nothing is held against limits."""

    device: str = "cpu"
    facts: MachineFacts | None = None
    telemetry: Telemetry = field(default_factory=NoTelemetry)
    _floors: dict[str, Floor] = field(default_factory=dict)
    _limits: dict[str, Limit] = field(default_factory=dict)

    def noise_floor(self, seconds: float) -> float:
        """Half-width of what differs between processes, for calls of that length.

        Where it was not measured, as on a CPU, it is that of hosts.
        """
        noise = self.facts.noise if self.facts else ()
        known = [n for n in noise if n.seconds <= seconds * 1.5] or list(noise[:1])
        return known[-1].half_width if known else HOST_NOISE

    def watch(self) -> DeviceWatch:
        """Begin to look for what disturbs."""
        return DeviceWatch(self.telemetry)

    def limits(
        self,
        task: Task,
        case: Case,
        seconds: float,
        launch_s: float | None,
        binaries: Sequence[Binary] = (),
    ) -> NearLimit:
        """Return how near a time is to what the device can do."""
        if self.facts is None:
            return NearLimit()
        made = self._floor(task, case)
        flags = []
        # Finding what sets the limit is costly, and the limit lies below the floor.
        if made.efficiency(seconds) > 1 and impossible(seconds, self._limit(task, case)):
            flags.append("below_floor")
        advice = advise(seconds, made, self.facts.ceilings, launch_s=launch_s, binaries=binaries)
        return NearLimit(
            efficiency=made.efficiency(seconds) if made.seconds else None,
            floor_us=made.seconds * 1e6,
            bound_by=advice.bound_by,
            bytes=made.bytes,
            flops=made.flops,
            advice=advice,
            flags=tuple(flags),
        )

    def too_long(self, task: Task, case: Case, side: Side) -> str | None:
        """Return why a baseline takes too long to be valid, if it does."""
        if side.ran is None or self.facts is None:
            return None
        return why_too_long(side.ran, side.warm_up_s, **self._least(task, case))

    def baseline(self, task: Task, case: Case, side: Side, seconds: float) -> BaselineNearLimit:
        """Return how near a baseline is to what the device can do."""
        ran = side.ran
        if self.facts is None:
            return BaselineNearLimit()
        made = self._floor(task, case)
        remark = None if ran is None else host_bound(ran, seconds, **self._least(task, case))
        return BaselineNearLimit(
            efficiency=made.efficiency(seconds) if made.seconds else None,
            launches=None if ran is None else ran.launches,
            remark=remark,
        )

    def _least(self, task: Task, case: Case) -> dict[str, float]:
        assert self.facts is not None
        launch_s = self.facts.ceilings.launch_s or USUAL_LAUNCH_S
        return {"floor_s": self._floor(task, case).seconds, "launch_s": launch_s}

    def _floor(self, task: Task, case: Case) -> Floor:
        assert self.facts is not None
        if case.identity not in self._floors:
            written = output_bytes(task, case)
            made = floor(task, case, self.facts.ceilings, output_bytes=written)
            self._floors[case.identity] = made
        return self._floors[case.identity]

    def _limit(self, task: Task, case: Case) -> Limit:
        assert self.facts is not None
        if case.identity not in self._limits:
            inputs = make_bench_inputs(task, case, device=self.device)
            drawn = inputs.at(task, case, inputs.draw(stream(0, "limit"), 1)[0])
            tensors = {
                n: None if t is None else t.to(self.device) for n, t in drawn.tensors.items()
            }
            fixed = [name for name, pool in inputs.pools.items() if pool.fixed]
            with torch.device(self.device):
                read = needed_bytes(task, case, replace(drawn, tensors=tensors), kept=fixed)
            shapes = output_shapes(task, case)
            self._limits[case.identity] = limit_of(
                task,
                case,
                self.facts.ceilings,
                read_bytes=read,
                output_elements=None if shapes is None else sum(math.prod(s) for s in shapes),
            )
        return self._limits[case.identity]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruments:
    """What identifies a device, measures it, and looks at it while something is timed."""

    environment: Callable[[str], Mapping[str, str | None]] = environment
    ceilings: Callable[..., Ceilings] = measure
    noise: Callable[[Runner, Telemetry], tuple[Noise, ...]] = measure_noise
    telemetry: Callable[..., Telemetry] = open_telemetry


def is_known(runner: Runner, instruments: Instruments | None = None) -> bool:
    """Return whether nothing is left to be measured on a runner's device."""
    about = (instruments or Instruments()).environment
    return runner.device == "cpu" or _stored(_path(about(runner.device))) is not None


def known_machine(
    runner: Runner,
    *,
    anew: bool = False,
    root: int | None = None,
    instruments: Instruments | None = None,
) -> Machine:
    """Return the machine of a runner; measure it if that was not done.

    With `anew` it is measured all the same. Descendants of `root` may use the device while
    something is timed.

    Raises:
        EnvironmentFault: it cannot be measured.
    """
    if runner.device == "cpu":
        return Machine()
    by = instruments or Instruments()
    about = by.environment(runner.device)
    path = _path(about)
    telemetry = by.telemetry(runner.device, root=root)
    facts = None if anew else _stored(path)
    if facts is None:
        with device_for_timing(runner.device):
            facts = MachineFacts(
                ceilings=by.ceilings(
                    runner,
                    device=about.get("device_name") or runner.device,
                    measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
                    versions={name: value for name, value in about.items() if value},
                ),
                noise=by.noise(runner, telemetry),
            )
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dumps(facts, indent=1) + "\n", "utf-8")
    return Machine(device=runner.device, facts=facts, telemetry=telemetry)


def _path(about: Mapping[str, str | None]) -> Path | None:
    """Return where a device's facts are kept; None if they cannot be kept."""
    folder = cache_root()
    identity = content_hash([SCHEMA, dict(about)])[:16]
    return None if folder is None else folder.parent / "devices" / f"{identity}.json"


def _stored(path: Path | None) -> MachineFacts | None:
    if path is None:
        return None
    try:
        return parse(MachineFacts, json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, UserError):
        return None
