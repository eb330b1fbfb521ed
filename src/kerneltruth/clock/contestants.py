"""Who takes part in a contest, on what inputs, with what effort, and what is seen of a lap."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, overload

from kerneltruth.cases.case import Case
from kerneltruth.cases.materialize import Inputs as Materialized
from kerneltruth.cases.philox import Stream
from kerneltruth.cases.pools import Choice, Choices, Pool, inputs_at
from kerneltruth.clock.validity import NOT_VALID, Operators
from kerneltruth.errors import InternalError
from kerneltruth.runner.protocol import Errand, Observation, Refill, Sample, ScalarArgument, Supply
from kerneltruth.runner.sealed import Sealed
from kerneltruth.tasks.spec import Task


class Timed(Protocol):
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
class Effort:
    """What a contest may cost, and how sure it is to be.

    Attributes:
        lap_s: device time of the longest laps, where rows suffice for it.
        graph_lap_s: the same where calls are short enough for graphs: their laps scatter more.
        blocks: fewest and most blocks.
        precision: half-width of the ratios' intervals, in logs and before the machine's noise, at
            which a contest ends.
        budget_s: seconds after which no further block begins, past the fewest.
        graph_below_s: if a call of anyone takes less, calls are captured in CUDA graphs where all
            contestants and memory allow it.
        memory_bytes: for the rows of one contestant.
        flush_bytes: read before each lap, at least.
        shown: how many laps have their last result shown.
        sampled: how many laps, among the fewest blocks, have calls sampled, and more where a lap
            has few; they are not measured.
        repeats: how many disturbed blocks are repeated.
        deadline_s: for one lap.
        warm: whether calls on inputs that the caches hold are timed, too.
        near: how near to 1, in logs, a ratio that is no tie is looked at in other processes, too.
    """

    lap_s: float = 0.004
    graph_lap_s: float = 0.012
    blocks: tuple[int, int] = (8, 60)
    precision: float = 0.002
    budget_s: float = 2.0
    graph_below_s: float = 100e-6
    memory_bytes: int = 4 * 2**30
    flush_bytes: int = 128 * 2**20
    shown: int = 2
    sampled: int = 2
    repeats: int = 20
    deadline_s: float = 30.0
    warm: bool = True
    near: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.lap_s <= self.graph_lap_s:
            raise InternalError(f"laps of graphs are the longer ones: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LapSeen:
    """One lap: its calls, the judge's seconds around it, and what the child claims.

    Attributes:
        host_s: until all calls were enqueued.
        ahead_s: for which the device was kept busy before the first.
    """

    calls: int
    wall_s: float
    device_s: float
    host_s: float
    ahead_s: float = 0.0

    @property
    def per_call_s(self) -> float:
        """Seconds of one call by the device's events."""
        return self.device_s / self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A result of a measured lap: which inputs the call had, and what it gave."""

    at: dict[str, Choice]
    seen: Observation


class ContestError(Exception):
    """A contestant could not go on; the observation says why."""

    def __init__(self, name: str, seen: Observation) -> None:
        super().__init__(f"{name}: {seen.ended}: {seen.message or ''}"[:400])
        self.name = name
        self.seen = seen


class NotValid(ContestError):
    """A baseline is none: where it runs, or how long it takes, says so."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, Observation(ended="returned", message=why))
        self.why = why

    def __str__(self) -> str:
        return f"{NOT_VALID}: {self.why}"


@dataclass(slots=True, kw_only=True)
class Contestant:
    """One side of a contest and what is known of it.

    Attributes:
        slot: where its child keeps this contest's rows.
        compiled: see `Stock`.
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
        settled: of which kinds of laps there were some on these rows: of graphs, or not.
        examined: whether it is asked what it runs, to tell whether it is a valid baseline; `ran` is
            what it said.
    """

    name: str
    child: Timed
    slot: int = 0
    compiled: str | None = None
    first_s: float = 0.0
    second_s: float = 0.0
    warm_up_s: float = 0.0
    launch_s: float = 0.0
    waits: bool = False
    warm_s: float | None = None
    stocked: bool = False
    warmed: bool = False
    rows: int = 0
    captured: bool | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    sample: Sample | None = None
    why_not: str | None = None
    peak_bytes: int = 0
    settled: set[bool] = field(default_factory=set)
    examined: bool = False
    ran: Operators | None = None

    def forget_rows(self) -> None:
        """Its child has them no more; whether calls can be captured stays known if they cannot."""
        self.settled.clear()
        self.rows, self.warmed, self.captured = 0, False, self.captured and None

    def do(self, message: Errand, deadline_s: float) -> Observation:
        """Have the child do one thing.

        Raises:
            ContestError: it did not return.
        """
        seen = self.child.errand(message, deadline_s=deadline_s)
        if seen.ended == "timeout":
            seen = replace(seen, message=f"no answer within {deadline_s:g} s")
        if seen.ended != "returned":
            raise ContestError(self.name, seen)
        return seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents(Sequence[dict[str, Choice]]):
    """What the tensors of many calls hold: of each call a choice by name.

    Attributes:
        calls: how many; a task may have no tensors that move.
        chosen: by name of the tensor, of each call.
    """

    calls: int
    chosen: Mapping[str, Choices]

    def __len__(self) -> int:
        return self.calls

    @overload
    def __getitem__(self, call: int) -> dict[str, Choice]: ...
    @overload
    def __getitem__(self, call: slice) -> Contents: ...
    def __getitem__(self, call: int | slice) -> dict[str, Choice] | Contents:
        if isinstance(call, slice):
            chosen = {name: choices[call] for name, choices in self.chosen.items()}
            return Contents(calls=len(range(self.calls)[call]), chosen=chosen)
        if not -self.calls <= call < self.calls:
            raise IndexError(call)
        return {name: choices[call] for name, choices in self.chosen.items()}

    def ending_with(self, last: Mapping[str, Choice]) -> Contents:
        """The same, but for the last call."""
        chosen = {n: choices.ending_with(last[n]) for n, choices in self.chosen.items()}
        return replace(self, chosen=chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the calls of a contest take: arguments in order, and the pools behind them.

    `held` keeps what the arguments name by path.
    """

    arguments: tuple[Supply | ScalarArgument, ...]
    pools: Mapping[str, Pool]
    held: tuple[Sealed, ...] = ()

    @property
    def moving(self) -> list[Supply]:
        """The tensors of which each call has its own."""
        return [a for a in self.arguments if isinstance(a, Supply) and not a.fixed]

    @property
    def row_bytes(self) -> int:
        """Memory of one call's inputs."""
        sizes = (
            math.prod(a.shape) * self.pools[a.name].elements.element_size() for a in self.moving
        )
        return sum(sizes)

    def at(self, task: Task, case: Case, choices: Mapping[str, Choice]) -> Materialized:
        """The tensors of the call that got these contents."""
        return inputs_at(task, case, self.pools, {n: choices.get(n, Choice()) for n in self.pools})

    def given(self, calls: Sequence[Mapping[str, Choice]]) -> Contents:
        """These contents, for as many calls."""
        chosen = {
            a.name: Choices(
                starts=tuple(call[a.name].start for call in calls),
                factors=tuple(call[a.name].factor for call in calls)
                if self.pools[a.name].scaled
                else (),
            )
            for a in self.moving
        }
        return Contents(calls=len(calls), chosen=chosen)

    def draw(self, rng: Stream, count: int) -> Contents:
        """Contents for so many calls."""
        chosen = {a.name: self.pools[a.name].choose(rng, count) for a in self.moving}
        return Contents(calls=count, chosen=chosen)

    def refill(self, rows: Sequence[int], contents: Contents) -> Refill:
        """The errand that gives rows these contents."""
        chosen = contents.chosen.values()
        scaled = any(c.factors for c in chosen)
        return Refill(
            rows=tuple(rows),
            windows=tuple(c.starts for c in chosen),
            scales=tuple(c.factors for c in chosen) if scaled else (),
        )
