"""A finished contest as a part of the document of `time --json`."""

from __future__ import annotations

from typing import Any

from kerneltruth.clock.contest import Contest
from kerneltruth.clock.contestants import Contestant
from kerneltruth.clock.standing import candidate_times, is_suspect, standings
from kerneltruth.codec import plain
from kerneltruth.commands.ground import Ground
from kerneltruth.commands.machine import Machine, Watch
from kerneltruth.runner.protocol import Binary, Loaded

# Flags of times that contradict something: nothing is called faster then.
CONTRADICTED = frozenset({"timing_suspect", "below_floor", "baseline_hindered"})


def shape_document(
    ground: Ground, contest: Contest, watch: Watch, *, machine: Machine
) -> dict[str, Any]:
    """What a contest shows of its candidate, on one shape.

    Args:
        ground: of the contest; knows what the shown results must be.
        contest: finished, with its children still there.
        watch: saw what disturbed it.
        machine: gives noise and limits.
    """
    own = candidate_times(contest)
    noise = machine.noise_floor(own.estimate)
    found = standings(contest, noise_floor=noise)
    launch_s = None if contest.graphs else contest.sides[0].launch_s
    kernels = [_binaries(side) for side in contest.sides]
    limits = machine.limits(ground.task, ground.case, own.estimate, launch_s, binaries=kernels[0])
    flags = list(dict.fromkeys([*limits.pop("flags"), *watch.flags(contest)]))
    if is_suspect(contest):
        flags.append("timing_suspect")
    not_faster = bool(CONTRADICTED & {*flags})
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
            }
            for s, side in zip(found, contest.sides[1:], strict=True)
        },
        "baselines_failed": dict(ground.failed),
        **limits,
        "graded": ground.graded(contest),
        "not_captured": next((s.why_not for s in contest.sides if s.why_not), None),
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


def _binaries(side: Contestant) -> tuple[Binary, ...]:
    """Static facts of the Triton kernels that a side has compiled, for all shapes so far."""
    seen = side.child.errand(Loaded())
    return seen.binaries if seen.ended == "returned" else ()


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6
