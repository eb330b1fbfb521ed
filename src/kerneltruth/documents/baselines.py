"""The record of baselines that runs have timed: `baselines --json`."""

from __future__ import annotations

from typing import Literal

from kerneltruth.documents.model import Model, Number


class TimedBaseline(Model, frozen=True, kw_only=True):
    """A baseline on one shape, as a run on one device has timed it beside candidates.

    Attributes:
        us: median of its times; `least_us` and `most_us` are their ends.
        candidates: beside how many candidates it was timed.
        method: whether calls were in CUDA graphs; without them, launching may be in the time.
        regime: cold caches of a GPU, or a CPU.
        conditions: what the device's readings showed beside any of them.
        date: when the run began, in ISO 8601 and UTC; null where an earlier version timed.
        version: of kerneltruth; null where the file does not say.
    """

    task: str
    shape: str
    dtype: str
    baseline: str
    us: Number
    least_us: Number
    most_us: Number
    candidates: int
    method: Literal["graph", "calls"]
    regime: Literal["cold", "cpu"]
    conditions: tuple[str, ...]
    device: str
    driver: str | None
    cuda: str | None
    torch: str | None
    triton: str | None
    date: str | None
    version: str | None
    run: str


class BaselinesDocument(Model, frozen=True, kw_only=True):
    """`baselines --json`.

    A record for comparisons by people: the clock times its baselines beside each candidate, and
    takes none from here.

    Attributes:
        left_out: why times of baselines do not count, with their number.
        csv: the file that was written, if any.
    """

    schema: Literal[1] = 1
    baselines: tuple[TimedBaseline, ...]
    left_out: dict[str, int]
    notes: tuple[str, ...]
    csv: str | None
