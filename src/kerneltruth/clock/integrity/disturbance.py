"""Decide what disqualifies a batch or a block: a disturbed device, or a host that was too slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kerneltruth.clock.device.telemetry import Reading, Telemetry
from kerneltruth.clock.protocol.sides import Batch
from kerneltruth.documents.timing import ConditionsRecord

# How far the SM clock may move within a block.
CLOCK_DRIFT = 0.02
# Throttle reasons that disqualify a block. A software power cap is not among them: a large matrix
# product reaches it on any device.
HARMFUL = ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake")


def disturbed(before: Reading | None, after: Reading | None) -> str | None:
    """Return why work between two readings does not count, or None if it does.

    - Clocks were held down by heat, by the power supply or by a slowdown of the hardware.
    - The clock of the multiprocessors moved by more than 2%, or the memory's at all. A large
      kernel's power cap is then named too; alone it is no disturbance. Readings of an idle device
      are ignored, since it clocks down by itself.
    - Another process computes on the device.
    """
    if before is None or after is None:
        return None
    if others := max(before.others, after.others):
        return f"{others} other process{'es' * (others > 1)} on the device"
    held = held_down(before, after)
    if harmful := [reason for reason in HARMFUL if reason in held]:
        return f"clocks held down: {', '.join(harmful)}"
    if before.idle or after.idle:
        return None
    capped = " (power cap)" if "sw_power_cap" in held else ""
    if _moved(before.sm_clock_mhz, after.sm_clock_mhz, CLOCK_DRIFT):
        return f"clock moved from {before.sm_clock_mhz} to {after.sm_clock_mhz} MHz{capped}"
    if _moved(before.memory_clock_mhz, after.memory_clock_mhz, 0.0):
        clocks = f"{before.memory_clock_mhz} to {after.memory_clock_mhz}"
        return f"memory clock moved from {clocks} MHz{capped}"
    return None


def held_down(before: Reading, after: Reading) -> set[str]:
    """Return the throttle reasons in force at either reading or in between."""
    grown = {k for k, v in after.held_down.items() if v > before.held_down.get(k, v)}
    return {*before.throttle, *after.throttle, *grown}


def _moved(before: int | None, after: int | None, share: float) -> bool:
    if not before or not after:
        return False
    return abs(after - before) > share * max(before, after)


class DisturbanceDetector:
    """Watches a device: each call says what disturbed it since the previous one."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._last: Reading | None = None
        self.readings: list[Reading] = []

    def __call__(self) -> str | None:
        """Say why work since the last call does not count; None at the first call."""
        before, self._last = self._last, self._telemetry.read()
        if self._last is not None:
            self.readings.append(self._last)
        return disturbed(before, self._last)


def conditions(readings: Sequence[Reading]) -> ConditionsRecord | None:
    """Return the extremes of readings; None if there are none."""
    if not readings:
        return None
    reasons = {*(r for one in readings for r in one.throttle)}
    reasons |= held_down(readings[0], readings[-1])
    return ConditionsRecord(
        readings=len(readings),
        sm_clock_mhz=_range(r.sm_clock_mhz for r in readings),
        memory_clock_mhz=_range(r.memory_clock_mhz for r in readings),
        temperature_c=max((r.temperature_c for r in readings if r.temperature_c), default=None),
        power_w=max((r.power_w for r in readings if r.power_w), default=None),
        throttle=tuple(sorted(reasons - {"gpu_idle"})),
        others=max(r.others for r in readings),
    )


def _range(values: Iterable[int | None]) -> tuple[int, int] | None:
    known = [v for v in values if v is not None]
    return (min(known), max(known)) if known else None


# The share of a batch for which the device may have waited for its host.
IDLE = 1e-3


def was_starved(batch: Batch) -> bool:
    """Return whether the device may have waited for calls within a batch: then the host was timed.

    If enqueueing finished before the first kernel started, the device was never starved. Otherwise
    the device may have waited for as long as the host took beyond that; events do not show where.
    """
    return batch.host_s - batch.head_start_s > IDLE * batch.device_s
