"""Nsight Compute's view of a kernel: the command that asks for it, and its answer read. Pure.

Whether `ncu` is there, and running it, is up to the caller. Profiling replays each kernel many
times under its own clocks, so nothing here is ever a time to report.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kerneltruth.errors import UserError

SECTIONS = (
    "SpeedOfLight",
    "MemoryWorkloadAnalysis",
    "ComputeWorkloadAnalysis",
    "WarpStateStats",
    "Occupancy",
    "LaunchStats",
)
# The share of its peak from which Nsight Compute's speed-of-light rule calls a unit the bound.
BUSY_PERCENT = 60.0

_UNITS = {
    "nsecond": 1e-9,
    "ns": 1e-9,
    "usecond": 1e-6,
    "us": 1e-6,
    "msecond": 1e-3,
    "ms": 1e-3,
    "second": 1.0,
    "s": 1.0,
    "Kbyte": 1e3,
    "Mbyte": 1e6,
    "Gbyte": 1e9,
    "Tbyte": 1e12,
}
_STALL = re.compile(r"_issue_stalled_(\w+?)(?:_not_issued)?_per_(?:issue|warp)_active")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One launch as Nsight Compute saw it.

    Attributes:
        grid: blocks along each axis.
        block: threads along each axis.
        metrics: by Nsight Compute's names, in seconds, bytes and percent.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    metrics: Mapping[str, float]

    def first(self, *names: str) -> float | None:
        """Return the first of these metrics that exists: names differ between versions."""
        return next((self.metrics[n] for n in names if n in self.metrics), None)

    @property
    def compute_percent(self) -> float | None:
        """Return how busy the multiprocessors' busiest unit is."""
        return self.first("sm__throughput.avg.pct_of_peak_sustained_elapsed")

    @property
    def memory_percent(self) -> float | None:
        """Return how busy the memory's busiest part is, caches included."""
        return self.first(
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
            "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed",
        )

    @property
    def waves(self) -> float | None:
        """Return how often the grid fills the device."""
        return self.first("launch__waves_per_multiprocessor")

    @property
    def stall(self) -> tuple[str, float] | None:
        """Return what warps wait for most, and how many wait for it at each issue."""
        found = {
            m.group(1): value
            for name, value in self.metrics.items()
            if (m := _STALL.search(name)) and m.group(1) != "selected"
        }
        return max(found.items(), key=lambda item: item[1]) if found else None

    @property
    def bound_by(self) -> Literal["memory", "compute", "latency"] | None:
        """Return the busier of the two if it is busy, by Nsight Compute's rule; else latency."""
        compute, memory = self.compute_percent, self.memory_percent
        if compute is None or memory is None:
            return None
        if max(compute, memory) < BUSY_PERCENT:
            return "latency"
        return "compute" if compute > memory else "memory"


def ncu_command(
    program: Sequence[str], *, kernel: str | None = None, launches: int = 1
) -> list[str]:
    """Return the command that profiles some launches of a program and prints CSV.

    The program says to the profiler when to begin; without a kernel's exact name, any is profiled.
    """
    sections = [word for name in SECTIONS for word in ("--section", name)]
    which = [] if kernel is None else ["--kernel-name", kernel]
    return [
        *("ncu", "--csv", "--page", "raw", "--print-units", "base"),
        *("--profile-from-start", "off"),
        *sections,
        *which,
        *("--launch-count", str(launches)),
        *program,
    ]


def read_profiles(text: str) -> tuple[Profile, ...]:
    """Parse the launches in what `ncu --csv --page raw` printed, perhaps between other lines.

    Raises:
        UserError: no table in it; says what ncu complained of instead.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        said = [line for line in lines if line.startswith(("==ERROR==", "==WARNING=="))]
        why = said[0] if said else "it printed no table"
        raise UserError(
            f"ncu: {why}; profiling may need the permission that "
            "https://developer.nvidia.com/ERR_NVGPUCTRPERM explains"
        )
    names, *table = csv.reader(line for line in lines[start:] if line.startswith('"'))
    whole = [dict(zip(names, row, strict=True)) for row in table if len(row) == len(names)]
    return tuple(_profile(row, whole[0]) for row in whole[1:])


def _profile(row: Mapping[str, str], units: Mapping[str, str]) -> Profile:
    metrics = {}
    for name, text in row.items():
        value = _number(text) if "__" in name else None
        if value is not None:
            metrics[name] = value * _UNITS.get(units[name].partition("/")[0], 1.0)
    return Profile(
        kernel=row.get("Kernel Name", ""),
        grid=_sizes(row.get("Grid Size", "")),
        block=_sizes(row.get("Block Size", "")),
        metrics=metrics,
    )


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text))
