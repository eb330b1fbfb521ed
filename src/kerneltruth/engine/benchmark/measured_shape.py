"""A candidate and its baselines on one shape: what was measured, then its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from msgspec import UNSET, structs

from kerneltruth.clock.comparison import (
    Comparison,
    candidate_times,
    comparisons,
    of_both,
    waits_for_hosts,
)
from kerneltruth.clock.integrity.suspicion import is_suspect
from kerneltruth.clock.outcome import (
    HOST_BOUND,
    NOT_GRADED,
    PROCESSES_DIFFER,
    Conclusion,
    Doubt,
    OutcomeFacts,
    conclude,
)
from kerneltruth.clock.protocol.sides import Side
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.clock.schedule.confirmation import retime_baselines
from kerneltruth.documents.model import model_of
from kerneltruth.documents.records import BinaryRecord
from kerneltruth.documents.timing import AloneTimes, BaselineTime, ShapeTimes
from kerneltruth.engine.benchmark.finished import FinishedBenchmark
from kerneltruth.engine.benchmark.machine import BaselineNearLimit, Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBaseline:
    """A baseline beside the candidate; see `OutcomeFacts`."""

    first: Comparison
    confirmation: Comparison | None
    warm_us: float | None
    limit: BaselineNearLimit
    hindered: bool = False

    def document(self, conclusion: Conclusion) -> BaselineTime:
        """The baseline's times with the word on them."""
        ratio = self.first.ratio
        if self.confirmation is not None:
            ratio = of_both(ratio, self.confirmation.ratio)
        return BaselineTime(
            us=self.first.baseline_s * 1e6,
            warm_us=self.warm_us,
            ratio=ratio.estimate,
            low=ratio.low,
            high=ratio.high,
            outcome=conclusion.outcome,
            efficiency=self.limit.efficiency,
            launches=self.limit.launches,
            remark=self.limit.remark,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredShape:
    """What was measured on a shape so far.

    Attributes:
        times: its document, but for the baselines.
    """

    times: ShapeTimes
    baselines: Mapping[str, MeasuredBaseline]

    def conclusion(self, name: str, candidate: Doubt | None = None) -> Conclusion:
        """The word on a baseline; `candidate` as for `OutcomeFacts`."""
        baseline = self.baselines[name]
        return conclude(
            OutcomeFacts(
                first=baseline.first,
                confirmation=baseline.confirmation,
                flags=self.times.flags,
                hindered=baseline.hindered,
                candidate=candidate,
            )
        )

    def document(self, candidate: Doubt | None = None) -> ShapeTimes:
        """The shape's document; `candidate` as for `OutcomeFacts`."""
        baselines = {
            name: baseline.document(self.conclusion(name, candidate))
            for name, baseline in self.baselines.items()
        }
        return structs.replace(self.times, baselines=baselines)


def measured_shape(found: FinishedBenchmark, *, machine: Machine) -> MeasuredShape:
    """Return a benchmark's results on one shape; `machine` gives noise and limits."""
    setup, benchmark, watch, kernels = found.setup, found.benchmark, found.watch, found.kernels
    own = candidate_times(benchmark)
    noise = machine.noise_floor(own.estimate)
    baselines = _baselines(found, machine, noise)
    # Otherwise its host was ahead of the device, and no figure contains the launch.
    launch_s = benchmark.sides[0].launch_s if benchmark.sides[0].waits else None
    limits = machine.limits(setup.task, setup.case, own.estimate, launch_s, binaries=kernels[0])
    graded = setup.graded(benchmark)
    seen = (*limits.flags, *watch.flags(benchmark))
    noted = _noted(benchmark, baselines, graded.not_graded)
    times = ShapeTimes(
        case=setup.case,
        summary=setup.case.summary(),
        strides=setup.inputs.strides or UNSET,
        candidate_us=own.estimate * 1e6,
        candidate_low=own.low * 1e6,
        candidate_high=own.high * 1e6,
        method="graph" if benchmark.graphs else "calls",
        regime="cold" if benchmark.on_gpu else "cpu",
        warm_us=_us(benchmark.sides[0].warm_s),
        blocks=len(benchmark.blocks),
        noise_floor=noise,
        baselines={},
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
        flags=tuple(dict.fromkeys([*seen, *noted])),
        energy=found.energy,
    )
    return MeasuredShape(times=times, baselines=baselines)


def _noted(
    benchmark: InterleavedBenchmark,
    baselines: Mapping[str, MeasuredBaseline],
    not_graded: str | None,
) -> list[str]:
    """The flags that follow from a benchmark's times and results."""
    pairs = (OutcomeFacts(first=b.first, confirmation=b.confirmation) for b in baselines.values())
    doubts = {
        HOST_BOUND: any(waits_for_hosts(benchmark, side) for side in benchmark.sides[1:]),
        PROCESSES_DIFFER: any(conclude(facts).doubt == PROCESSES_DIFFER for facts in pairs),
        "timing_suspect": is_suspect(benchmark),
        NOT_GRADED: bool(not_graded),
    }
    return [flag for flag, holds in doubts.items() if holds]


def _baselines(
    found: FinishedBenchmark, machine: Machine, noise: float
) -> dict[str, MeasuredBaseline]:
    first = comparisons(found.benchmark, noise_floor=noise)
    others = comparisons(found.confirmation, noise_floor=noise) if found.confirmation else ()
    confirming = {comparison.baseline: comparison for comparison in others}

    def measured(comparison: Comparison, side: Side) -> MeasuredBaseline:
        return MeasuredBaseline(
            first=comparison,
            confirmation=confirming.get(comparison.baseline),
            warm_us=_us(side.warm_s),
            limit=machine.baseline(found.setup.task, found.setup.case, side, comparison.baseline_s),
        )

    pairs = zip(first, found.benchmark.sides[1:], strict=True)
    return {comparison.baseline: measured(comparison, side) for comparison, side in pairs}


def retimed(
    shape: MeasuredShape,
    benchmark: InterleavedBenchmark,
    machine: Machine,
    *,
    wait_for_end: Callable[[], None],
) -> MeasuredShape:
    """Time beaten baselines of a shape again; `wait_for_end` returns once the candidate ended."""
    # Baselines that restarted at a later shape have no buffers for this one any more.
    there = [side.name for side in benchmark.sides[1:] if side.buffers]
    beaten = [name for name in there if shape.conclusion(name).outcome == "faster"]
    if not beaten:
        return shape
    wait_for_end()
    watch = machine.watch()
    watch.disturbance()
    look = retime_baselines(benchmark, beaten, capped="power_capped" in shape.times.flags)
    watch.disturbance()
    alone_us = {name: median(seconds) * 1e6 for name, seconds in look.alone_s.items()}
    flags = (*shape.times.flags, "baseline_hindered") if look.hindered else shape.times.flags
    return MeasuredShape(
        times=structs.replace(
            shape.times,
            alone=AloneTimes(us=alone_us, conditions=watch.conditions()),
            flags=flags,
        ),
        baselines={
            name: replace(baseline, hindered=name in look.hindered)
            for name, baseline in shape.baselines.items()
        },
    )


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6
