"""Who takes part in a benchmark, on what inputs, with what effort, and what is seen of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from kerneltruth.cases.pools import Choice
from kerneltruth.clock.protocol.operators import Operators
from kerneltruth.runner.protocol import Errand, Observation
from kerneltruth.runner.timing.messages import SpotCheck


class TimedChild(Protocol):
    """A child in mode "time"; see `runner.host.Session`."""

    def errand(
        self, message: Errand, *, sizes: dict[str, int] | None = None, deadline_s: float = 30.0
    ) -> Observation:
        """Have it do one thing."""
        ...

    def restart(self) -> None:
        """Begin anew in a fresh process."""
        ...

    def close(self, *, wait: bool = True) -> None:
        """End; without `wait` this is only asked for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch: its calls, the judge's seconds around it, and what the child claims.

    Attributes:
        host_s: until all calls were enqueued.
        ahead_s: for which the device was kept busy before the first.
    """

    calls: int
    wall_s: float
    device_s: float
    host_s: float
    head_start_s: float = 0.0

    @property
    def per_call_s(self) -> float:
        """Seconds of one call by the device's events."""
        return self.device_s / self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResult:
    """A result of a measured batch: which inputs the call had, and what it gave."""

    at: dict[str, Choice]
    seen: Observation


class SideError(Exception):
    """A side could not go on; the observation says why."""

    def __init__(self, name: str, seen: Observation) -> None:
        super().__init__(f"{name}: {seen.ended}: {seen.message or ''}"[:400])
        self.name = name
        self.seen = seen


@dataclass(slots=True, kw_only=True)
class Side:
    """One side of a benchmark and what is known of it.

    Attributes:
        slot: where its child keeps this benchmark's rows.
        compiled: see `PrepareInputs`.
        first_s: the judge's seconds of its first call, which compiles; `second_s` of the next.
        stocked: whether its child holds what rows are filled with, and has compiled.
        warmed: whether it has spare rows beside that, and others are yet to be made.
        rows: that it has for calls; 0 before they are made.
        captured: whether its calls are in graphs; None before that was tried. `why_not` says more.
        groups: the rows of each graph.
        sample: which of its calls are sampled now.
        peak_bytes: of memory that one call allocates beyond its inputs.
        warm_up_s: of a call, as the warm-up showed it; `launch_s` the host's part, where it was
            quickest.
        waits: whether its calls wait for the device, so that its host cannot get ahead.
        warm_s: of a call on inputs that the caches hold, where that was measured.
        settled: of which kinds of batches there were some on these rows: of graphs, or not.
        examined: whether it is asked what it runs, to tell whether it is a valid baseline; `ran` is
            what it said.
    """

    name: str
    child: TimedChild
    slot: int = 0
    compiled: str | None = None
    first_s: float = 0.0
    second_s: float = 0.0
    warm_up_s: float = 0.0
    launch_s: float = 0.0
    waits: bool = False
    warm_s: float | None = None
    has_inputs: bool = False
    warmed_up: bool = False
    buffers: int = 0
    captured: bool | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    spot_check: SpotCheck | None = None
    why_not: str | None = None
    peak_bytes: int = 0
    settled: set[bool] = field(default_factory=set)
    examined: bool = False
    ran: Operators | None = None

    def forget_buffers(self) -> None:
        """Its child has them no more; whether calls can be captured stays known if they cannot."""
        self.settled.clear()
        self.buffers, self.warmed_up, self.captured = 0, False, self.captured and None

    def do(self, message: Errand, deadline_s: float) -> Observation:
        """Have the child do one thing.

        Raises:
            ContestError: it did not return.
        """
        seen = self.child.errand(message, deadline_s=deadline_s)
        if seen.ended == "timeout":
            seen = replace(seen, message=f"no answer within {deadline_s:g} s")
        if seen.ended != "returned":
            raise SideError(self.name, seen)
        return seen


class Measurements(Protocol):
    """What was timed so far; see `schedule.benchmark.Benchmark`."""

    @property
    def sides(self) -> Sequence[Side]:
        """The candidate first."""
        ...

    @property
    def blocks(self) -> Sequence[Mapping[str, tuple[Batch, ...]]]:
        """For each block its batches by the side's name."""
        ...

    @property
    def overheads(self) -> Sequence[Mapping[str, tuple[float, ...]]]:
        """For each block the overheads of shortest batches in seconds, by the side's name."""
        ...
