"""The device's state beside the measurement: clocks, temperature, power, and who else is there.

Clocks cannot be locked on a rented machine, so they are read around each block, through NVML, and
a block during which they moved, or were held down, is measured again. What NVML reports is read in
`nvml`; what it means is decided here, by `disturbed`, which is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

# How far the clock of the multiprocessors may move within a block.
CLOCK_DRIFT = 0.02

# Those that say that the device is not in a state to be timed. A software power cap is not among
# them: a large product of matrices runs into it on any device.
HARMFUL = ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The device at one moment; None where it does not say.

    Attributes:
        sm_clock_mhz: clock of the multiprocessors.
        memory_clock_mhz: of the memory.
        temperature_c: of the chip, in degrees Celsius.
        power_w: drawn, in watts.
        throttle: why clocks are not at their highest, by NVML's names.
        held_down: how long each of some reasons has held clocks down, in units of the driver's,
            ever growing.
        others: processes that compute on the device and are none of ours.
        at: seconds on the judge's monotonic clock.
    """

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttle: tuple[str, ...] = ()
    held_down: Mapping[str, int] = field(default_factory=dict)
    others: int = 0
    at: float = 0.0

    @property
    def idle(self) -> bool:
        """Whether the device had nothing to do, so that its clock says nothing of a kernel's."""
        return "gpu_idle" in self.throttle


class Telemetry(Protocol):
    """A device that can be asked how it is."""

    def read(self) -> Reading | None:
        """The device now; None if it cannot be asked."""
        ...

    def close(self) -> None:
        """Ask no more."""
        ...


class NoTelemetry:
    """A CPU, or a device that NVML does not show."""

    def __init__(self, why: str = "not a CUDA device") -> None:
        self.why = why

    def read(self) -> Reading | None:
        """Nothing."""
        return None

    def close(self) -> None:
        """Nothing to close."""


def disturbed(before: Reading | None, after: Reading | None) -> str | None:
    """Why what ran between two readings does not count, or None if it does.

    - Clocks were held down by heat, by the power supply or by a slowdown of the hardware.
    - The clock of the multiprocessors moved by more than 2%, or the memory's at all. The power cap
      that a large kernel runs into is named then; alone it is no disturbance. Readings of an idle
      device have no say, since it clocks down by itself.
    - Another process computes on the device.
    """
    if before is None or after is None:
        return None
    if others := max(before.others, after.others):
        return f"{others} other process{'es' * (others > 1)} on the device"
    held = _held_down(before, after)
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


def _held_down(before: Reading, after: Reading) -> set[str]:
    """The reasons that are in force at either reading, or were between them."""
    grown = {k for k, v in after.held_down.items() if v > before.held_down.get(k, v)}
    return {*before.throttle, *after.throttle, *grown}


def _moved(before: int | None, after: int | None, share: float) -> bool:
    if not before or not after:
        return False
    return abs(after - before) > share * max(before, after)


class Lookout:
    """Watches a device: says at each question what disturbed it since the one before."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._last: Reading | None = None
        self.readings: list[Reading] = []

    def __call__(self) -> str | None:
        """Why what ran since the last question does not count; None at the first."""
        before, self._last = self._last, self._telemetry.read()
        if self._last is not None:
            self.readings.append(self._last)
        return disturbed(before, self._last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What readings together say, for a record; clocks as lowest and highest."""

    readings: int
    sm_clock_mhz: tuple[int, int] | None
    memory_clock_mhz: tuple[int, int] | None
    temperature_c: int | None
    power_w: float | None
    throttle: tuple[str, ...]
    others: int


def conditions(readings: Sequence[Reading]) -> Conditions | None:
    """The extremes of some readings; None without any."""
    if not readings:
        return None
    reasons = {*(r for one in readings for r in one.throttle)}
    reasons |= _held_down(readings[0], readings[-1])
    return Conditions(
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
