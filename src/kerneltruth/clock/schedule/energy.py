"""Measure the energy of calls by the device's own counter, while one side after the other runs.

The judge reads the counter around batches that last a second at least, since it moves only every
few hundredths of a second. Batches run in one order and then backwards, so a drift of the device's
temperature hits all sides alike. While a baseline runs, the candidate is paused.

The counter and the clock are the judge's own. That the calls of a batch were all made is the
child's word: a batch counts only if it took as long as the timed calls say.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from kerneltruth.clock.device.telemetry import Reading, Telemetry
from kerneltruth.clock.integrity.disturbance import held_down
from kerneltruth.clock.integrity.suspicion import LEAST_S, batches_of, judge_times
from kerneltruth.clock.protocol.buffers import shuffled
from kerneltruth.clock.protocol.sides import Side, SideError
from kerneltruth.clock.schedule.background_work import paused
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.documents.timing import CallEnergy, ShapeEnergy

# What a batch is made for: a second is left where calls are as much faster than timed ones as is
# allowed.
BATCH_S = 1.25
# Seconds during which the idle device is measured, and those before, in which its power falls.
IDLE_S = 1.0
SETTLE_S = 0.5
# How much a batch's calls may differ from timed ones, as a share; and how much slower they may be
# where the power limit holds the device back, since shorter batches reach it less.
AGREES = 0.2
AGREES_CAPPED = 0.6
# The counter moves at least this often.
TICK_S = 0.5
_LOOK_S = 1e-3


class _NotReadError(Exception):
    """The counter cannot be read any more; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeteredBatch:
    """A batch as the judge saw it, with its energy.

    Attributes:
        joules: of the device during the batch.
        why_not: why it does not count.
    """

    calls: int
    seconds: float
    joules: float
    why_not: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meter:
    """The device's energy counter, and the judge's clock."""

    telemetry: Telemetry
    now: Callable[[], float]
    sleep: Callable[[float], None]

    def tick(self) -> tuple[float, float]:
        """Wait until the counter moves; return the time and joules since some moment."""
        first, began = self._joules(), self.now()
        while True:
            joules, at = self._joules(), self.now()
            if joules != first or at > began + TICK_S:
                return at, joules
            self.sleep(_LOOK_S)

    def idle_watts(self) -> float:
        """Return the power of the device while nothing runs."""
        self.sleep(SETTLE_S)
        began, before = self.tick()
        self.sleep(IDLE_S)
        ended, after = self.tick()
        return (after - before) / (ended - began)

    def _joules(self) -> float:
        found = self.telemetry.energy_j()
        if isinstance(found, str):
            raise _NotReadError(found)
        return found


def measure_energy(
    benchmark: InterleavedBenchmark,
    telemetry: Telemetry,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> ShapeEnergy:
    """Return the energy of the calls of all sides of a benchmark whose blocks have run."""
    meter = _Meter(telemetry=telemetry, now=benchmark.now, sleep=sleep)
    batches: dict[str, list[_MeteredBatch]] = {side.name: [] for side in benchmark.sides}
    failed: dict[str, str] = {}
    try:
        meter.tick()
        with paused([benchmark.sides[0].child]):
            idle_watts = meter.idle_watts()
        order = [benchmark.sides[i] for i in shuffled(len(benchmark.sides), benchmark.rng)]
        for side in (s for s in (*order, *order[::-1]) if s.name not in failed):
            try:
                batches[side.name].append(_metered(benchmark, side, meter, idle_watts))
            except SideError as error:
                failed[side.name] = str(error)
    except _NotReadError as error:
        return ShapeEnergy(idle_watts=None, sides={}, reason=str(error))
    sides = {name: _energy_of(found, failed.get(name)) for name, found in batches.items()}
    return ShapeEnergy(idle_watts=idle_watts, sides=sides, reason=None)


def _metered(
    benchmark: InterleavedBenchmark, side: Side, meter: _Meter, idle_watts: float
) -> _MeteredBatch:
    call_s = _timed_s(benchmark, side)
    candidate = benchmark.sides[0]
    with paused([] if side is candidate else [candidate.child]):
        state = meter.telemetry.read()
        began, before = meter.tick()
        batch = benchmark.loop(side, BATCH_S, call_s=call_s)
        ended, after = meter.tick()
        states = (state, meter.telemetry.read())
    # Before the calls and after them the device is idle until the counter moves.
    joules = after - before - idle_watts * (ended - began - batch.wall_s)
    why_not = None if joules > 0 else "the energy counter stood still"
    return _MeteredBatch(
        calls=batch.calls,
        seconds=batch.wall_s,
        joules=joules,
        why_not=why_not or _why_not(batch.wall_s / batch.calls, call_s, states),
    )


def _timed_s(benchmark: InterleavedBenchmark, side: Side) -> float:
    """Return seconds of a call as timed; of the candidate's, what the judge's clock admits."""
    if side is benchmark.sides[0]:
        return median(seconds for block in judge_times(benchmark) for seconds in block)
    return max(median(batch.per_call_s for batch in batches_of(benchmark, side.name)), LEAST_S)


def _why_not(
    call_s: float, timed_s: float, states: tuple[Reading | None, Reading | None]
) -> str | None:
    """Return why a batch does not count, or None if it does."""
    before, after = states
    if others := max(state.others if state else 0 for state in states):
        return f"{others} other process{'es' * (others > 1)} on the device"
    capped = before is not None and after is not None and "sw_power_cap" in held_down(before, after)
    share = call_s / timed_s - 1
    if -AGREES <= share <= (AGREES_CAPPED if capped else AGREES):
        return None
    return (
        f"a call took {call_s * 1e6:.3g} us in the loop and {timed_s * 1e6:.3g} us when timed, "
        f"over {AGREES:.0%} apart"
    )


def _energy_of(batches: Sequence[_MeteredBatch], failed: str | None) -> CallEnergy:
    seconds = sum(batch.seconds for batch in batches)
    reason = failed or next((batch.why_not for batch in batches if batch.why_not), None)
    known = reason is None
    each = tuple(batch.joules / batch.calls for batch in batches)
    return CallEnergy(
        joules=sum(each) / len(each) if known else None,
        watts=sum(batch.joules for batch in batches) / seconds if known else None,
        laps=each if known else (),
        calls=batches[0].calls if batches else 0,
        seconds=seconds,
        reason=reason,
    )
