"""The device's state beside the measurement: clocks, temperature, power, other processes.

Clocks cannot be locked on a rented machine, so they are read around each block, through NVML, and
a block during which they moved, or were held down, is measured again. `nvml` reads NVML's reports;
`integrity.disturbance.disturbed` interprets them, and is pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The device at one moment; None where it does not say.

    Attributes:
        throttle: why clocks are not at their highest, by NVML's names.
        held_down: how long each of some reasons has held clocks down, in units of the driver's,
            ever growing.
        others: processes that compute on the device and are not ours.
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
        """Return whether the device was idle, so that its clock says nothing about a kernel's."""
        return "gpu_idle" in self.throttle


class Telemetry(Protocol):
    """A device whose state can be read."""

    def read(self) -> Reading | None:
        """Return the state now; None if it cannot be read."""
        ...

    def energy_j(self) -> float | str:
        """Return joules since the driver was loaded, or why they are not read."""
        ...

    def close(self) -> None:
        """Release the reader."""
        ...


class NoTelemetry:
    """A CPU, or a device that NVML does not show."""

    def __init__(self, why: str = "not a CUDA device") -> None:
        self.why = why

    def read(self) -> Reading | None:
        """Nothing."""
        return None

    def energy_j(self) -> str:
        """Return why there is no counter."""
        return self.why

    def close(self) -> None:
        """Nothing to close."""
