"""Read a GPU's state through NVML (`pynvml`), and find which GPU `cuda:N` is."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kerneltruth.clock.device.telemetry import NoTelemetry, Reading

# NVML's names of why clocks are not at their highest (nvml.h, nvmlClocksEventReason*), by bit.
_REASONS = {
    0x1: "gpu_idle",
    0x2: "clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
    0x100: "display_clock_setting",
}
# Seconds for which the same processes on a device are assumed to have the same owners.
REFRESH_S = 1.0
# Fields that count how long each reason has held clocks down since the driver was loaded, so that
# nothing between two readings is missed (NVML_FI_DEV_CLOCKS_EVENT_REASON_*).
_COUNTERS = {
    74: "sw_power_cap",
    269: "sw_thermal_slowdown",
    270: "hw_thermal_slowdown",
    271: "hw_power_brake",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as NVML lists it, in the order of PCI addresses."""

    uuid: str
    name: str


def chosen(
    index: int, present: Sequence[Gpu], *, visible: str | None, by_address: bool = False
) -> str | None:
    """Return the UUID of what CUDA calls device `index`, or None if it is unknown.

    Args:
        index: N of `cuda:N`.
        present: all GPUs, in NVML's order.
        visible: `CUDA_VISIBLE_DEVICES`: numbers, or UUIDs that may be cut short; an entry that is
            neither ends the list. None means that it is not set.
        by_address: whether `CUDA_DEVICE_ORDER` is `PCI_BUS_ID`. If it is not, CUDA puts the
            fastest first, and numbers mean something only among GPUs of one kind.
    """
    ordered = by_address or len({gpu.name for gpu in present}) < 2
    if visible is None:
        uuids: list[str | None] = [gpu.uuid if ordered else None for gpu in present]
    else:
        uuids = []
        for entry in filter(None, (part.strip() for part in visible.split(","))):
            if entry.startswith("MIG-"):
                uuids.append(entry)
                continue
            if re.fullmatch(r"\d+", entry):
                found = [gpu.uuid for gpu in present[int(entry) : int(entry) + 1]]
                uuids += found if ordered else [None] * len(found)
            else:
                found = [gpu.uuid for gpu in present if gpu.uuid.startswith(entry)]
                uuids += found if len(found) == 1 else []
            if len(found) != 1:
                break
    return uuids[index] if 0 <= index < len(uuids) else None


def open_telemetry(device: str, *, root: int | None = None) -> NvmlTelemetry | NoTelemetry:
    """Telemetry of `cuda:N`, as this process sees devices; none of a CPU, or without NVML.

    Descendants of `root` are ours; by default those of this process.
    """
    if not device.startswith("cuda"):
        return NoTelemetry()
    try:
        import pynvml
    except ImportError as error:
        return NoTelemetry(str(error))
    return connect(
        pynvml,
        int(device.partition(":")[2] or 0),
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
        by_address=os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID",
        ours=partial(family, os.getpid() if root is None else root),
    )


def connect(
    nvml: Any,
    index: int,
    *,
    visible: str | None,
    by_address: bool,
    ours: Callable[[], Collection[int]],
    now: Callable[[], float] = time.monotonic,
) -> NvmlTelemetry | NoTelemetry:
    """Find the device in NVML, which is `pynvml` or a stand-in for it."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return NoTelemetry(f"NVML: {error}")
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        present = [
            Gpu(uuid=_text(nvml.nvmlDeviceGetUUID(h)), name=_text(nvml.nvmlDeviceGetName(h)))
            for h in handles
        ]
        uuid = chosen(index, present, visible=visible, by_address=by_address)
        if uuid is None:
            raise LookupError(f"cuda:{index} is none of the {len(present)} that NVML shows")
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        if uuid.startswith("MIG-"):
            # A slice has no clock of its own.
            handle = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
    except (nvml.NVMLError, LookupError) as error:
        nvml.nvmlShutdown()
        return NoTelemetry(f"NVML: {error}")
    return NvmlTelemetry(nvml, handle, ours, now, slice_of_gpu=uuid.startswith("MIG-"))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


class NvmlTelemetry:
    """A GPU asked through NVML; make one with `open_telemetry`."""

    def __init__(
        self,
        nvml: Any,
        handle: Any,
        ours: Callable[[], Collection[int]],
        now: Callable[[], float] = time.monotonic,
        *,
        slice_of_gpu: bool = False,
    ) -> None:
        self._slice_of_gpu = slice_of_gpu
        self._nvml, self._handle, self._ours, self._now = nvml, handle, ours, now
        self._seen: frozenset[int] = frozenset()
        self._strangers, self._looked = 0, 0.0

    def read(self) -> Reading | None:
        """Return the device's state now; None if it is gone."""
        nvml = self._nvml
        power = self._ask("nvmlDeviceGetPowerUsage")
        reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        reading = Reading(
            sm_clock_mhz=self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            memory_clock_mhz=self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            temperature_c=self._ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            power_w=None if power is None else power / 1000,
            throttle=tuple(name for bit, name in _REASONS.items() if reasons & bit),
            held_down=self._counters(),
            others=self._others(),
            at=self._now(),
        )
        return None if reading.sm_clock_mhz is None and power is None else reading

    def energy_j(self) -> float | str:
        """Return joules of the whole card since the driver was loaded, or why they are not read."""
        if self._slice_of_gpu:
            return "a MIG slice has no energy counter of its own"
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000
        except self._nvml.NVMLError as error:
            return f"NVML: {error}"

    def close(self) -> None:
        """Release NVML."""
        self._nvml.nvmlShutdown()

    def _ask(self, name: str, *more: Any) -> Any:
        """Return NVML's answer, or None if this device or driver has none."""
        try:
            return getattr(self._nvml, name)(self._handle, *more)
        except self._nvml.NVMLError:
            return None

    def _counters(self) -> dict[str, int]:
        values = self._ask("nvmlDeviceGetFieldValues", list(_COUNTERS)) or ()
        return {
            _COUNTERS[v.fieldId]: int(v.value.ullVal)
            for v in values
            if v.nvmlReturn == 0 and v.fieldId in _COUNTERS
        }

    def _others(self) -> int:
        running = self._ask("nvmlDeviceGetComputeRunningProcesses") or ()
        seen = frozenset(p.pid for p in running)
        now = self._now()
        # Listing our processes takes milliseconds when many judges run; blocks follow faster.
        if seen != self._seen or now > self._looked + REFRESH_S:
            self._seen, self._looked = seen, now
            self._strangers = strangers(seen, self._ours) if seen else 0
        return self._strangers


def strangers(seen: Collection[int], ours: Callable[[], Collection[int]]) -> int:
    """Return how many of the processes on a device are not ours.

    In a container NVML may report the host's process ids, which match none of ours. Then as many
    processes as we have count as ours, which may hide another one.
    """
    own = set(ours())
    known = own & set(seen)
    return len(set(seen) - own) if known or not own else max(len(seen) - len(own), 0)


def family(root: int) -> frozenset[int]:
    """Return the numbers of a process and its descendants, as `/proc` has them."""
    found, waiting = set(), [root]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += _children(pid)
    return frozenset(found)


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(n) for task in tasks for n in (task / "children").read_text().split()]
    except OSError:
        # It has just ended, or this kernel does not list children.
        return []
