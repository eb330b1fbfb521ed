"""The sides of a benchmark, candidate and baselines: their children, and batches as seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from kerneltruth.cases.pools import Choice
from kerneltruth.clock.protocol.operators import Operators
from kerneltruth.errors import InternalError
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.protocol import ChildMessage
from kerneltruth.runner.timing.messages import SpotCheck

# Slower calls are made as rarely as possible.
SLOW_S = 0.1


class Pausable(Protocol):
    """A process that can be stopped, and goes on where it was."""

    def pause(self) -> None:
        """Ask it to stop; its deadlines wait."""
        ...

    @property
    def paused(self) -> bool:
        """Return whether it has stopped, or is gone."""
        ...

    def resume(self) -> None:
        """Let it go on."""
        ...


class TimedChild(Pausable, Protocol):
    """A child in mode "time"; see `runner.session.Session`."""

    def request(
        self,
        message: ChildMessage,
        *,
        sizes: dict[str, int] | None = None,
        deadline_s: float = 30.0,
    ) -> Observation:
        """Have it do one thing."""
        ...

    def restart(self) -> None:
        """Start a fresh process in place of this one."""
        ...

    def close(self, *, wait: bool = True) -> None:
        """End it; without `wait`, only request it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch as measured.

    Attributes:
        wall_s: seconds on the judge's clock, from asking for it to its answer.
        device_s: seconds of its calls by the device's events, as the child claims.
        host_s: seconds until all calls were enqueued, as the child claims.
        head_start_s: seconds for which the device was kept busy before the first call.
    """

    calls: int
    wall_s: float
    device_s: float
    host_s: float
    head_start_s: float = 0.0

    @property
    def per_call_s(self) -> float:
        """Return seconds of one call by the device's events."""
        return self.device_s / self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResult:
    """The result of a batch's final call: `at` are its inputs, `seen` its results."""

    at: dict[str, Choice]
    seen: Observation


class SideError(Exception):
    """A side cannot go on; the observation says why."""

    def __init__(self, name: str, seen: Observation) -> None:
        super().__init__(f"{name}: {seen.ended}: {seen.message or ''}"[:400])
        self.name = name
        self.seen = seen


class Readiness(Enum):
    """What a side's child has ready for a benchmark's calls."""

    NEW = "nothing"
    COMPILED = "inputs, and the entry has compiled"
    WARMED_UP = "spare buffers beside these"
    READY = "buffers for the calls of batches"


class ChildEvent(Enum):
    """An event that changes a side's readiness."""

    WARMED_UP = "its first two calls are done"
    ALLOCATED = "buffers for batches are allocated"
    FREED = "its buffers are freed"
    RESTARTED = "a fresh process has taken the place of its child"


_READINESS = {
    **{(before, ChildEvent.RESTARTED): Readiness.NEW for before in Readiness},
    (Readiness.NEW, ChildEvent.WARMED_UP): Readiness.WARMED_UP,
    (Readiness.COMPILED, ChildEvent.WARMED_UP): Readiness.WARMED_UP,
    (Readiness.WARMED_UP, ChildEvent.ALLOCATED): Readiness.READY,
    (Readiness.READY, ChildEvent.ALLOCATED): Readiness.READY,
    (Readiness.NEW, ChildEvent.FREED): Readiness.NEW,
    (Readiness.COMPILED, ChildEvent.FREED): Readiness.COMPILED,
    (Readiness.WARMED_UP, ChildEvent.FREED): Readiness.COMPILED,
    (Readiness.READY, ChildEvent.FREED): Readiness.COMPILED,
}


class Graphs(Enum):
    """Whether the calls of a side are in CUDA graphs."""

    UNTRIED = "capture has not been tried"
    CAPTURED = "they are captured"
    REFUSED = "they cannot be captured"


@dataclass(slots=True, kw_only=True)
class Side:
    """One side of a benchmark, and its state.

    Attributes:
        slot: where its child keeps this benchmark's buffers.
        compiled: see `PrepareInputs`.
        readiness: what its child holds; `advance` changes it.
        buffers: how many its child holds for calls; 0 unless it is `READY`.
        graphs: whether its calls are in graphs; `why_not_captured` says why they are not.
        groups: the buffers of each graph.
        first_s: the judge's seconds of its first call, which compiles; `second_s` of the next.
        warm_up_s: seconds of a call, as estimated before the first batch; `launch_s` those of its
            host, at its quickest.
        warm_s: seconds of a call on inputs that the caches hold; None if not measured.
        waits: whether its calls wait for the device, so its host cannot get ahead.
        spot_check: which of its calls are checked now.
        peak_bytes: memory that one call allocates beyond its inputs.
        tuned: the kinds of batches (of graphs, or not) whose head start was tuned on its buffers.
        examined: whether it is a function of PyTorch whose operators are counted, to tell whether
            it is a valid baseline; `ran` holds the counts.
    """

    name: str
    child: TimedChild
    slot: int = 0
    compiled: str | None = None
    readiness: Readiness = Readiness.NEW
    buffers: int = 0
    graphs: Graphs = Graphs.UNTRIED
    why_not_captured: str | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    first_s: float = 0.0
    second_s: float = 0.0
    warm_up_s: float = 0.0
    launch_s: float = 0.0
    warm_s: float | None = None
    waits: bool = False
    spot_check: SpotCheck | None = None
    peak_bytes: int = 0
    tuned: set[bool] = field(default_factory=set)
    examined: bool = False
    ran: Operators | None = None

    def advance(self, event: ChildEvent, *, buffers: int = 0) -> None:
        """Follow an event of the child; every event but a warm-up replaces its buffers.

        A refusal to be captured stays known; captured graphs go with the buffers.

        Raises:
            InternalError: the event is impossible in this state.
        """
        after = _READINESS.get((self.readiness, event))
        if after is None:
            raise InternalError(f"{self.name}: {event.name} cannot follow {self.readiness.name}")
        self.readiness = after
        if event is ChildEvent.WARMED_UP:
            return
        self.buffers = buffers
        self.tuned.clear()
        if self.graphs is Graphs.CAPTURED:
            self.graphs = Graphs.UNTRIED

    @property
    def is_slow(self) -> bool:
        """Return whether calls are so slow that as few as possible are made."""
        return self.warm_up_s > SLOW_S

    def do(self, message: ChildMessage, deadline_s: float) -> Observation:
        """Have the child do one thing.

        Raises:
            SideError: it did not return.
        """
        seen = self.child.request(message, deadline_s=deadline_s)
        if seen.ended == "timeout":
            seen = replace(seen, message=f"no answer within {deadline_s:g} s")
        if seen.ended != "returned":
            raise SideError(self.name, seen)
        return seen


class Measurements(Protocol):
    """The measurements so far; see `schedule.benchmark.InterleavedBenchmark`."""

    @property
    def sides(self) -> Sequence[Side]:
        """Return the sides, the candidate first."""
        ...

    @property
    def blocks(self) -> Sequence[Mapping[str, tuple[Batch, ...]]]:
        """For each block its batches by the side's name."""
        ...

    @property
    def overheads(self) -> Sequence[Mapping[str, tuple[float, ...]]]:
        """For each block the overheads of shortest batches in seconds, by the side's name."""
        ...
