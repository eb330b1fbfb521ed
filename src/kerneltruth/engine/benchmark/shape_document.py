"""A finished contest as a part of the document of `time --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kerneltruth.clock.comparison import (
    Standing,
    candidate_times,
    confirmed,
    standings,
    waits_for_hosts,
)
from kerneltruth.clock.integrity.doubt import is_suspect
from kerneltruth.clock.protocol.sides import Contestant
from kerneltruth.clock.schedule.benchmark import Contest
from kerneltruth.documents.model import plain
from kerneltruth.engine.benchmark.machine import Machine, Watch
from kerneltruth.engine.benchmark.setup import TimingSetup
from kerneltruth.runner.protocol import Binary, Loaded

# Flags of times that contradict something: nothing is called faster then.
CONTRADICTED = frozenset({"timing_suspect", "below_floor", "baseline_hindered"})
# Of times that are a host's.
HOST_BOUND = "host_bound"
# Of times that differ between processes of the same programs by more than the laps of each tell.
PROCESSES_DIFFER = "processes_differ"
# Of a shape whose results the judge cannot know: nothing is called faster either.
NOT_GRADED = "not_graded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A contest that was run to its end.

    Attributes:
        ground: of the contest; knows what the shown results must be.
        watch: saw what disturbed it.
        kernels: static facts of the Triton kernels that each side has compiled so far.
        again: the same in other processes, against baselines that are nearly as quick.
    """

    ground: TimingSetup
    contest: Contest
    watch: Watch
    kernels: tuple[tuple[Binary, ...], ...]
    again: Contest | None = None


def finished(ground: TimingSetup, contest: Contest, watch: Watch) -> Finished:
    """What is left of a contest when its children are gone; asks them, while they are there."""
    kernels = tuple(_binaries(side) for side in contest.sides)
    return Finished(ground=ground, contest=contest, watch=watch, kernels=kernels)


def shape_document(found: Finished, *, machine: Machine) -> dict[str, Any]:
    """What a contest shows of its candidate, on one shape; `machine` gives noise and limits."""
    ground, contest, watch, kernels = found.ground, found.contest, found.watch, found.kernels
    own = candidate_times(contest)
    noise = machine.noise_floor(own.estimate)
    first = standings(contest, noise_floor=noise)
    against = _confirmed(first, found.again, noise)
    # Else its host was ahead of the device, and launching is in no figure.
    launch_s = contest.sides[0].launch_s if contest.sides[0].waits else None
    limits = machine.limits(ground.task, ground.case, own.estimate, launch_s, binaries=kernels[0])
    flags = list(dict.fromkeys([*limits.pop("flags"), *watch.flags(contest)]))
    if any(waits_for_hosts(contest, side) for side in contest.sides[1:]):
        flags.append(HOST_BOUND)
    if any(s.outcome != f.outcome for s, f in zip(against, first, strict=True)):
        flags.append(PROCESSES_DIFFER)
    if is_suspect(contest):
        flags.append("timing_suspect")
    graded = ground.graded(contest)
    if graded["not_graded"]:
        flags.append(NOT_GRADED)
    not_faster = not {*flags}.isdisjoint({*CONTRADICTED, NOT_GRADED})
    return {
        "case": plain(ground.case),
        "summary": ground.case.summary(),
        "candidate_us": own.estimate * 1e6,
        "candidate_low": own.low * 1e6,
        "candidate_high": own.high * 1e6,
        "method": "graph" if contest.graphs else "calls",
        "regime": "cold" if contest.on_gpu else "cpu",
        "warm_us": _us(contest.sides[0].warm_s),
        "blocks": len(contest.blocks),
        "noise_floor": noise,
        "baselines": {
            s.baseline: {
                "us": s.baseline_s * 1e6,
                "warm_us": _us(side.warm_s),
                "ratio": s.ratio.estimate,
                "low": s.ratio.low,
                "high": s.ratio.high,
                "outcome": "tie" if not_faster and s.outcome == "faster" else s.outcome,
                **machine.baseline(ground.task, ground.case, side, s.baseline_s),
            }
            for s, side in zip(against, contest.sides[1:], strict=True)
        },
        "baselines_failed": dict(ground.failed),
        **limits,
        "graded": graded,
        "not_captured": contest.why_not_captured,
        "kernels": {
            side.name: plain(binaries)
            for side, binaries in zip(contest.sides, kernels, strict=True)
            if binaries
        },
        "repeated": contest.disturbed,
        "conditions": plain(watch.conditions()),
        "flags": flags,
        "peak_bytes": {s.name: s.peak_bytes for s in contest.sides},
    }


def _confirmed(
    first: tuple[Standing, ...], again: Contest | None, noise: float
) -> tuple[Standing, ...]:
    seen = {s.baseline: s for s in standings(again, noise_floor=noise)} if again else {}
    return tuple(confirmed(s, seen[s.baseline]) if s.baseline in seen else s for s in first)


def _binaries(side: Contestant) -> tuple[Binary, ...]:
    if side.ran is not None and side.compiled is None:
        # Eager PyTorch: looking for them takes longer than many laps.
        return ()
    seen = side.child.errand(Loaded())
    return seen.binaries if seen.ended == "returned" else ()


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6
