"""Candidates and baselines timed side by side: each in a process of its own, lap by lap in turn.

A contest is on one case. Every lap calls one contestant a random number of times; each call finds
inputs in memory of its own, with contents that no earlier call saw, and cold caches. A block is a
lap of each and then, backwards, a lap of each again, so that a drift of the clocks hits all alike.
What counts are device events within the lap; they are the child's claims, and the wall time that
the judge sees around the lap, over random numbers of calls, is what they are held against.

Among the measured laps are others of which some calls are sampled. They are made as any other, so
that whoever leaves out work leaves it out there too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kerneltruth.cases.philox import Stream
from kerneltruth.cases.pools import Choice
from kerneltruth.clock.integrity.spot_checks import (
    EVERY,
    Sampled,
    count_sampled,
    laps_to_sample,
    sources_of,
)
from kerneltruth.clock.integrity.valid_baselines import NotValid
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import Contents, Inputs
from kerneltruth.clock.protocol.rows import (
    GROUPS,
    LEAST_CAPTURED,
    SPARE,
    WARM,
    count_rows,
    sampled_groups,
    shuffled,
)
from kerneltruth.clock.protocol.sides import Contestant, LapSeen, Shown
from kerneltruth.clock.schedule.batches import SLOW_S, Laps
from kerneltruth.clock.schedule.stopwatch import Spent

# If calls are sampled and results have more elements, they are shown once: that takes a while.
LARGE = 2**20
# How many times more rows than there are, or fewer, are made anew.
REMADE = 2
# Of which the quickest counts, of calls on inputs in the caches.
WARM_LAPS = 3
# How often a baseline that seems to take too long is gauged again while the device is disturbed.
ASKED = 3
STARVED = "a host was slower than the device"


@dataclass(slots=True, kw_only=True)
class Contest:
    """A contest in progress.

    Attributes:
        sides: the candidate first.
        known: contents whose results the judge knows, for the laps that are shown.
        elements: how many each output has, where the judge can tell for each whether it is right;
            none where it cannot, and nothing is sampled.
        graphs: whether the calls are captured.
        rows: for the calls of each side.
        blocks: for each side its laps of one block, by the side's name.
        around: what shortest laps, each right after one of a block, cost on the judge's clock
            beyond their device time; by the side's name, of the candidate always.
        too_long: says why a baseline that was gauged takes too long to be one, if it does.
        doubted: whether those of the first baseline are looked at, too.
        disturbed: why blocks were thrown away and repeated.
        now: the judge's clock, in seconds.
    """

    sides: list[Contestant]
    inputs: Inputs
    effort: Effort
    rng: Stream
    known: Sequence[dict[str, Choice]] = ()
    elements: tuple[int, ...] = ()
    on_gpu: bool = True
    graphs: bool = False
    rows: int = 0
    blocks: list[dict[str, tuple[LapSeen, ...]]] = field(default_factory=list)
    around: list[dict[str, tuple[float, ...]]] = field(default_factory=list)
    too_long: Callable[[Contestant], str | None] = lambda side: None
    doubted: bool = False
    disturbed: list[str] = field(default_factory=list)
    now: Callable[[], float] = time.perf_counter
    shown: list[Shown] = field(default_factory=list)
    sampled: list[Sampled] = field(default_factory=list)
    _laps: Laps = field(init=False)
    _order: list[int] = field(default_factory=list)
    _spent: Spent = field(init=False)

    def __post_init__(self) -> None:
        self._spent = Spent(self.now)
        self._laps = Laps(
            inputs=self.inputs,
            effort=self.effort,
            rng=self.rng,
            on_gpu=self.on_gpu,
            now=self.now,
        )

    @property
    def spent(self) -> dict[str, float]:
        """Seconds that went into each step of the preparation, and into parts of all laps.

        Those of laps are contents, calls (see `Laps.spent`), and asking what disturbed.
        """
        return {**self._spent, **self._laps.spent}

    def prepare(self, disturbance: Callable[[], str | None] = lambda: None) -> None:
        """Stock everyone who is not yet, have them compile, and settle how calls are made.

        Args:
            disturbance: see `run`.

        Raises:
            ContestError: a contestant cannot, or is no baseline.
        """
        with self._spent.on("compiling"):
            self.warm_up()
        with self._spent.on("gauging"):
            for side in [side for side in self.sides if not side.rows]:
                self._laps.gauge(side)
                self._refuse_if_too_long(side, disturbance)
            self.rows = self._count_rows()
            for side in self.sides:
                # As many for everyone: laps of other lengths have other edges.
                if side.rows != self.rows:
                    self._laps.make_rows(side, self.rows)
        with self._spent.on("capturing"):
            wanted = self.on_gpu and self._wants_graphs()
            self.graphs = wanted and all(map(self._capture, self.sides))
            for side in self.sides:
                # Its child began anew, since another of its sides could not be captured.
                if side.rows != self.rows:
                    self._laps.warm_up(side)
                    self._laps.make_rows(side, self.rows)
            if self.sides[0].sample is not None and not self.graphs:
                # Someone else could not be captured.
                self._laps.end_sampling(self.sides[0])
            self._laps.hides = self.on_gpu and not self.graphs
        with self._spent.on("settling"):
            for side in self.sides:
                # Memory and clocks settle; nothing of it counts.
                lap = self._lap(side, self._count())
                if self.on_gpu:
                    first = self.graphs not in side.settled
                    self._laps.settle(side, self._order, lap, graphs=self.graphs, first=first)

    def _refuse_if_too_long(self, side: Contestant, disturbance: Callable[[], str | None]) -> None:
        """Refuse a baseline that takes too long, by calls that nothing disturbed.

        Where there are none such it goes on to be timed, unless each call takes so long that no
        disturbance is the reason, and laps of it would cost too much.

        Raises:
            NotValid: it takes too long.
        """
        for _ in range(ASKED):
            if self.too_long(side) is None:
                return
            disturbance()
            self._laps.gauge_again(side)
            reason, why = disturbance(), self.too_long(side)
            if why is not None and (reason is None or _is_slow(side)):
                raise NotValid(side.name, why)

    def warm_up(self) -> None:
        """Stock everyone who is not yet, and have them compile, side by side: nothing is timed yet.

        Raises:
            ContestError: a contestant cannot.
        """
        cold = [side for side in self.sides if not side.rows and not side.warmed]
        with ThreadPoolExecutor(max(len(cold), 1)) as pool:
            try:
                for done in [pool.submit(self._laps.warm_up, side) for side in cold]:
                    done.result()
            except KeyboardInterrupt:
                # Else those that compile, or never answer, would be waited for.
                for side in cold:
                    side.child.close(wait=False)
                raise

    def _around(self, side: Contestant, *, show: bool = False) -> float:
        """What a shortest lap costs beyond its device time, on rows of the last lap."""
        # Of a single call the child would also say what memory it takes, at a cost.
        rows = self._order[: 1 if self.graphs or _is_slow(side) else 2]
        known = self.known[len(self.shown) % len(self.known)] if show else {}
        if show:
            self._laps.refill(side, rows[-1:], self.inputs.given([known]))
        lap = self._laps.lap(side, rows, graphs=self.graphs)
        if show:
            self.shown.append(Shown(at=known, seen=self._laps.show(side)))
        return lap.wall_s - lap.device_s

    def run(
        self,
        enough: Callable[[Contest], bool],
        disturbance: Callable[[], str | None] = lambda: None,
        *,
        most: int | None = None,
    ) -> None:
        """Run blocks until there are enough, or the budget is spent.

        Args:
            enough: whether the blocks so far suffice.
            disturbance: says what disturbed the device since it was last asked, if anything did:
                such a block is repeated.
            most: blocks in all, if more than the effort allows.
        """
        began = self.now()
        least = self.effort.blocks[0]
        most = self.effort.blocks[1] if most is None else most
        show_at = self._blocks_to_show(least)
        sample_at = self._blocks_to_sample(least) if self.samples else []
        disturbance()
        while len(self.blocks) < most:
            spent = self.now() - began
            if len(self.blocks) >= least and (spent > self.effort.budget_s or enough(self)):
                break
            index = len(self.blocks)
            block, around = self._block(show=index in show_at)
            with self._spent.on("looking"):
                reason = disturbance() or self._starved(block)
            if reason is not None and len(self.disturbed) < self.effort.repeats:
                self.disturbed.append(reason)
                continue
            self.blocks.append(block)
            self.around.append(around)
            if index >= least and self.samples and not int(self.rng.integers(1, 0, EVERY)):
                sample_at.append(index)
            for _ in range(sample_at.count(index)):
                self._sampled_lap()
        if self.samples:
            # Who stopped working at some time has stopped by now.
            self._sampled_lap()

    def _starved(self, block: dict[str, tuple[LapSeen, ...]]) -> str | None:
        """Why a block does not count if hosts were too slow in it.

        Then they get more time, and else no more than they need.
        """
        if not self.on_gpu:
            return None
        laps = [(side, lap) for side in self.sides for lap in block[side.name]]
        if any([self._laps.get_ahead(*each) for each in laps]):
            return STARVED
        self._laps.come_down(laps)
        return None

    @property
    def samples(self) -> bool:
        """Whether calls of the candidate are sampled."""
        return bool(self.known and self.elements)

    def _block(
        self, *, show: bool
    ) -> tuple[dict[str, tuple[LapSeen, ...]], dict[str, tuple[float, ...]]]:
        """A lap of each side, in an order of this block's own, and then backwards.

        Calls of one pass have the same contents for everyone: what they hold may decide how long
        they take.
        """
        found: dict[str, list[LapSeen]] = {side.name: [] for side in self.sides}
        around: dict[str, list[float]] = {
            side.name: [] for side in self.sides[: 2 if self.doubted else 1]
        }
        order = [self.sides[i] for i in shuffled(len(self.sides), self.rng)]
        for sides in (order, order[::-1]):
            count = self._count()
            contents = self._drawn(count * self._size)
            for side in sides:
                shows = show and side.name == self.sides[0].name and bool(found[side.name])
                found[side.name].append(self._lap(side, count, contents, show=shows))
                if side.name in around:
                    # A lap of a slow one is as short as can be, so what it costs hardly changes.
                    known = self.around[0].get(side.name) if _is_slow(side) and self.around else ()
                    # Its calls are all enqueued before it begins, which only the first of a longer
                    # lap may be: who does not wait for the lap is shown here.
                    first = side is self.sides[0] and not around[side.name]
                    early = show and first and self._laps.hides and not self.samples
                    # At once: how quick a host is changes within a second.
                    around[side.name].append(
                        known[0] if known and not early else self._around(side, show=early)
                    )
        return (
            {name: tuple(laps) for name, laps in found.items()},
            {name: tuple(costs) for name, costs in around.items()},
        )

    def alone(
        self, names: Sequence[str], laps: int, *, settle_s: float = 0.0
    ) -> dict[str, list[float]]:
        """Seconds of a call of these baselines, lap by lap, now that the candidate is gone.

        Args:
            names: whose.
            laps: of each.
            settle_s: so long, and for one lap of each at least, nothing counts: after a pause the
                device is cool and quick for a while.
        """
        sides = [side for side in self.sides[1:] if side.name in names]
        found: dict[str, list[float]] = {side.name: [] for side in sides}
        began = self.now()
        settled = False
        while not settled:
            self._turn_alone(sides)
            settled = self.now() - began >= settle_s
        for _ in range(laps):
            for name, seconds in self._turn_alone(sides).items():
                found[name].append(seconds)
        return found

    def _turn_alone(self, sides: Sequence[Contestant]) -> dict[str, float]:
        """Seconds of a call of each side in one lap."""
        count = self._count()
        return {side.name: self._lap(side, count).per_call_s for side in sides}

    def show_known(self, side: Contestant) -> Iterator[Shown]:
        """What a side gives for contents whose results the judge knows; nothing is timed.

        Raises:
            ContestError: it could not go on.
        """
        for known in self.known:
            self._laps.refill(side, [0], self.inputs.given([known]))
            self._laps.lap(side, [0])
            yield Shown(at=known, seen=self._laps.show(side))

    def measure_warm(self) -> None:
        """How long a call takes on inputs that stay in the caches, for sides not yet known."""
        for side in self.sides if self.effort.warm else ():
            if side.warm_s is not None:
                continue
            slow = _is_slow(side)
            calls = side.rows // GROUPS if self.graphs else max(4, min(side.rows, 64))
            if side.warm_up_s > self.effort.lap_s:
                calls = min(calls, 2)
            calls = 1 if slow else calls
            rows = [WARM] if self.graphs else [0] * calls
            self._laps.refill(side, [0], self.inputs.draw(self.rng, 1))
            laps = [self._laps.lap(side, rows, graphs=self.graphs, calls=calls)]
            while len(laps) < WARM_LAPS and not slow:
                laps.append(self._laps.lap(side, rows, graphs=self.graphs, calls=calls))
            side.warm_s = min(lap.per_call_s for lap in laps)

    def _blocks_to_show(self, least: int) -> set[int]:
        """Blocks whose last lap of the candidate is shown: the last of the fewest, and others."""
        if not self.known:
            return set()
        shown = 1 if self.samples and sum(self.elements) > LARGE else self.effort.shown
        picks = self.rng.integers(max(shown - 1, 0), 0, least).tolist()
        return {least - 1, *picks}

    def _blocks_to_sample(self, least: int) -> list[int]:
        if self.graphs:
            size = self.rows // GROUPS
            sampled = len(sampled_groups(self.rows)) * count_sampled(size)
        else:
            sampled = count_sampled(max(self.rows // 2, 1))
        return laps_to_sample(self.effort.sampled, sampled, blocks=least, rng=self.rng)

    def _count_rows(self) -> int:
        """As many as baselines have, unless laps would be much longer or shorter than they should.

        Then a candidate before this one was much slower, or quicker, than all others.
        """
        there = next((s.rows for s in self.sides if s.rows), 0)
        wanted = count_rows(
            self.effort,
            row_bytes=self.inputs.row_bytes,
            fastest_s=min(side.warm_up_s for side in self.sides),
            slowest_s=max(side.warm_up_s for side in self.sides),
        )
        return there if wanted < REMADE * there < REMADE**2 * wanted else wanted

    def _wants_graphs(self) -> bool:
        return self._are_short and self.rows >= LEAST_CAPTURED

    @property
    def _are_short(self) -> bool:
        """Whether a call of anyone is short enough for graphs."""
        return min(side.warm_up_s for side in self.sides) < self.effort.graph_below_s

    @property
    def why_not_captured(self) -> str | None:
        """Why calls that are short enough for graphs are made one by one; None if they are not."""
        if self.graphs or not self.on_gpu or not self._are_short:
            return None
        if self.rows < LEAST_CAPTURED:
            return f"memory holds inputs for {self.rows} calls; graphs take {LEAST_CAPTURED}"
        return next((side.why_not for side in self.sides if side.why_not), None)

    def _capture(self, side: Contestant) -> bool:
        if side is self.sides[0] and self.samples:
            sources = sources_of(self.known)
            return self._laps.capture(side, elements=self.elements, sources=sources)
        return self._laps.capture(side)

    def _count(self) -> int:
        """How many rows, or captured groups of them, a lap takes: nobody can know beforehand."""
        most = GROUPS if self.graphs else self.rows
        least = math.ceil(most / 2)
        return least + int(self.rng.integers(1, 0, most - least + 1))

    @property
    def _size(self) -> int:
        """How many calls a captured group has, or a lap for each row that it takes."""
        return self.rows // GROUPS if self.graphs else 1

    def _drawn(self, calls: int) -> Contents:
        with self._spent.on("contents"):
            return self.inputs.draw(self.rng, calls)

    def _lap(
        self, side: Contestant, count: int, contents: Contents | None = None, *, show: bool = False
    ) -> LapSeen:
        """A lap over so many rows, or groups, in random order; contents are drawn if left out."""
        if self.graphs:
            return self._lap_over(side, shuffled(GROUPS, self.rng)[:count], contents, show=show)
        order = [SPARE + i for i in shuffled(side.rows, self.rng)[:count]]
        return self._lap_over(side, order, contents, show=show)

    def _lap_over(
        self,
        side: Contestant,
        order: list[int],
        contents: Contents | None = None,
        *,
        show: bool = False,
    ) -> LapSeen:
        rows = [row for g in order for row in side.groups[g]] if self.graphs else order
        self._order = order
        contents = contents or self._drawn(len(rows))
        if show:
            contents = contents.ending_with(self.known[len(self.shown) % len(self.known)])
        with self._spent.on("contents"):
            self._laps.refill(side, rows, contents)
        lap = self._laps.lap(side, order, graphs=self.graphs, calls=len(rows))
        if show:
            self.shown.append(Shown(at=contents[-1], seen=self._laps.show(side)))
        return lap

    def _sampled_lap(self) -> None:
        """A lap of the candidate that nobody can tell from others, with calls that are sampled."""
        side = self.sides[0]
        count = self._count()
        if self.graphs:
            order = shuffled(GROUPS, self.rng)[:count]
            places = shuffled(count, self.rng)
            for place, group in zip(places, sampled_groups(side.rows), strict=False):
                order[place] = group
        else:
            order = [SPARE + i for i in shuffled(side.rows, self.rng)[:count]]
            self._laps.begin_sampling(
                side, [order], elements=self.elements, sources=sources_of(self.known)
            )
        first = int(self.rng.integers(1, 0, len(self.known)))
        known = [self.known[(first + i) % len(self.known)] for i in range(sources_of(self.known))]
        self._laps.refill(side, range(len(known)), self.inputs.given(known))
        self._lap_over(side, order)
        seen = self._laps.show_sampled(side)
        assert side.sample is not None
        at = tuple(known[source] for source in side.sample.sources)
        self.sampled.append(Sampled(at=at, spots=side.sample.spots, seen=seen))
        if not self.graphs:
            self._laps.end_sampling(side)
        # As after any other.
        self._around(side)


def _is_slow(side: Contestant) -> bool:
    return side.warm_up_s > SLOW_S
