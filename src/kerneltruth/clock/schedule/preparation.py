"""Prepare the sides of a benchmark: compile, estimate calls, allocate buffers, capture graphs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kerneltruth.clock.integrity.spot_checks import sources_of
from kerneltruth.clock.integrity.valid_baselines import NotValid
from kerneltruth.clock.protocol.buffers import LEAST_CAPTURED, count_buffers
from kerneltruth.clock.protocol.sides import Readiness, Side
from kerneltruth.clock.schedule.batches import BenchmarkBatches

# By which factor the number of buffers must differ before they are allocated anew.
REMADE = 2
# How often a baseline that seems too slow is timed again while the device is disturbed.
TRIES = 3


def prepare_sides(
    batches: BenchmarkBatches,
    too_long: Callable[[Side], str | None],
    disturbance: Callable[[], str | None],
) -> None:
    """Prepare all sides, and decide how many buffers they have and whether calls are captured.

    `too_long` says why a baseline whose calls were estimated takes too long, if it does;
    `disturbance` what disturbed the device since it was last asked, if anything did.

    Raises:
        SideError: a side cannot.
        NotValid: a side is no valid baseline.
    """
    seconds, runner = batches.seconds, batches.runner
    with seconds.on("compiling"):
        compile_sides(batches)
    with seconds.on("gauging"):
        for side in [side for side in batches.sides if not side.buffers]:
            runner.estimate_call(side)
            _refuse_if_too_long(batches, side, too_long, disturbance)
        batches.buffers = _count_buffers(batches)
        for side in batches.sides:
            # The same for all sides: batches of different lengths have different edges.
            if side.buffers != batches.buffers:
                runner.allocate_buffers(side, batches.buffers)
    with seconds.on("capturing"):
        _capture(batches)
    with seconds.on("settling"):
        for side in batches.sides:
            batches.tune_head_start(side)


def compile_sides(batches: BenchmarkBatches) -> None:
    """Have every side that is not ready compile, side by side.

    Raises:
        SideError: a side cannot.
    """
    cold = [s for s in batches.sides if s.readiness in (Readiness.NEW, Readiness.COMPILED)]
    with ThreadPoolExecutor(max(len(cold), 1)) as pool:
        try:
            for done in [pool.submit(batches.runner.warm_up, side) for side in cold]:
                done.result()
        except KeyboardInterrupt:
            # Otherwise sides that still compile, or never answer, would be waited for.
            for side in cold:
                side.child.close(wait=False)
            raise


def _refuse_if_too_long(
    batches: BenchmarkBatches,
    side: Side,
    too_long: Callable[[Side], str | None],
    disturbance: Callable[[], str | None],
) -> None:
    """Refuse a baseline that is too slow, judging by undisturbed calls.

    Without any such calls it is timed all the same, unless a call is so slow that no disturbance
    explains it and its batches would cost too much.

    Raises:
        NotValid: the baseline is too slow.
    """
    for _ in range(TRIES):
        if too_long(side) is None:
            return
        disturbance()
        batches.runner.re_estimate_call(side)
        reason, why = disturbance(), too_long(side)
        if why is not None and (reason is None or side.is_slow):
            raise NotValid(side.name, why)


def _count_buffers(batches: BenchmarkBatches) -> int:
    """Use as many buffers as baselines have, unless batches would be far too long or short.

    They are if an earlier candidate was much slower, or faster, than all others.
    """
    there = next((s.buffers for s in batches.sides if s.buffers), 0)
    wanted = count_buffers(
        batches.effort,
        buffer_bytes=batches.inputs.buffer_bytes,
        fastest_s=min(side.warm_up_s for side in batches.sides),
        slowest_s=max(side.warm_up_s for side in batches.sides),
    )
    return there if wanted < REMADE * there < REMADE**2 * wanted else wanted


def _capture(batches: BenchmarkBatches) -> None:
    """Capture the calls of all sides in graphs, or of none."""
    runner, candidate = batches.runner, batches.sides[0]
    wanted = batches.on_gpu and batches.are_short and batches.buffers >= LEAST_CAPTURED
    batches.graphs = wanted and all(
        runner.capture(
            side,
            elements=batches.elements if side is candidate and batches.checks else (),
            sources=sources_of(batches.known),
        )
        for side in batches.sides
    )
    for side in batches.sides:
        # Its child restarted because another of its sides could not be captured.
        if side.buffers != batches.buffers:
            runner.warm_up(side)
            runner.allocate_buffers(side, batches.buffers)
    if candidate.spot_check is not None and not batches.graphs:
        # Another side could not be captured.
        runner.end_spot_check(candidate)
    runner.hides = batches.on_gpu and not batches.graphs
