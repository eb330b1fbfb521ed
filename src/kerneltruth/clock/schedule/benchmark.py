"""Candidate and baselines timed side by side: their batches interleave, each in its own process.

A benchmark is on one case. Every batch calls one side a random number of times; each call finds
inputs in memory of its own, with contents that no earlier call saw, and cold caches. A block is a
batch of each and then, backwards, a batch of each again, so a drift of the clocks hits all alike.
Device events within the batch give its time. They are the child's claims: the judge checks them
against the wall time around batches of random numbers of calls.

Spot-checked batches run between the measured ones, and look like them. A candidate that leaves out
work therefore leaves it out there, too.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kerneltruth.cases.philox import Stream
from kerneltruth.cases.pools import Choice
from kerneltruth.clock.integrity.spot_checks import (
    EVERY,
    SpotChecked,
    batches_to_check,
    count_checked,
    sources_of,
)
from kerneltruth.clock.integrity.valid_baselines import NotValid
from kerneltruth.clock.protocol.buffers import (
    GROUPS,
    LEAST_CAPTURED,
    SPARE,
    WARM,
    checked_groups,
    count_buffers,
    shuffled,
)
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import BenchInputs, Contents
from kerneltruth.clock.protocol.sides import Batch, Readiness, ShownResult, Side
from kerneltruth.clock.schedule.batch_runner import BatchRunner
from kerneltruth.clock.schedule.blocks import BatchesOf, Blocks, OverheadsOf
from kerneltruth.clock.schedule.phase import BenchmarkStep, Phase, after, after_failure
from kerneltruth.clock.schedule.stopwatch import Stopwatch

# With larger outputs, results are graded once instead of spot-checked: grading takes long.
LARGE = 2**20
# By which factor the number of buffers must differ before they are allocated anew.
REMADE = 2
# How many calls on cached inputs are timed; the fastest counts.
WARM_BATCHES = 3
# How often a baseline that seems too slow is timed again while the device is disturbed.
ASKED = 3
STARVED = "a host was slower than the device"


@dataclass(slots=True, kw_only=True)
class InterleavedBenchmark:
    """A benchmark in progress.

    Attributes:
        sides: the candidate first.
        known: contents with known results, for the batches that are shown.
        elements: how many each output has, where the judge can tell for each whether it is right;
            none where it cannot, and nothing is sampled.
        graphs: whether the calls are captured.
        rows: for the calls of each side.
        phase: how far it has come.
        too_long: says why a baseline that was gauged takes too long to be one, if it does.
        doubted: whether those of the first baseline are looked at, too.
        now: the judge's clock, in seconds.
    """

    sides: list[Side]
    inputs: BenchInputs
    effort: Effort
    rng: Stream
    known: Sequence[dict[str, Choice]] = ()
    elements: tuple[int, ...] = ()
    on_gpu: bool = True
    phase: Phase = Phase.CREATED
    graphs: bool = False
    buffers: int = 0
    too_long: Callable[[Side], str | None] = lambda side: None
    suspected: bool = False
    now: Callable[[], float] = time.perf_counter
    shown: list[ShownResult] = field(default_factory=list)
    spot_checks: list[SpotChecked] = field(default_factory=list)
    _batches: BatchRunner = field(init=False)
    _order: list[int] = field(default_factory=list)
    _spent: Stopwatch = field(init=False)
    _blocks: Blocks = field(init=False)

    def __post_init__(self) -> None:
        self._spent = Stopwatch(self.now)
        self._blocks = Blocks(effort=self.effort)
        self._batches = BatchRunner(
            inputs=self.inputs,
            effort=self.effort,
            rng=self.rng,
            on_gpu=self.on_gpu,
            now=self.now,
        )

    @contextlib.contextmanager
    def _step(self, step: BenchmarkStep) -> Iterator[None]:
        phase, self.phase = after(self.phase, step), after_failure(self.phase, step)
        yield
        self.phase = phase

    @property
    def blocks(self) -> list[BatchesOf]:
        """For each side its batches of one block, by the side's name."""
        return self._blocks.counted

    @property
    def overheads(self) -> list[OverheadsOf]:
        """Overheads of the shortest batches that followed those of a block, by the side's name."""
        return self._blocks.overheads

    @property
    def disturbed(self) -> list[str]:
        """Return why blocks were thrown away and repeated."""
        return self._blocks.disturbed

    @property
    def spent(self) -> dict[str, float]:
        """Return seconds of each step of the preparation, and of parts of all batches.

        Those of batches are contents, calls (see `BatchRunner.spent`), and asking what disturbed.
        """
        return {**self._spent, **self._batches.spent}

    def prepare(self, disturbance: Callable[[], str | None] = lambda: None) -> None:
        """Prepare all sides: allocate inputs, compile, and decide how calls are made.

        Args:
            disturbance: see `run`.

        Raises:
            ContestError: a side cannot, or is no baseline.
        """
        with self._step(BenchmarkStep.PREPARE):
            self._prepare(disturbance)

    def _prepare(self, disturbance: Callable[[], str | None]) -> None:
        with self._spent.on("compiling"):
            self._warm_up()
        with self._spent.on("gauging"):
            for side in [side for side in self.sides if not side.buffers]:
                self._batches.estimate_call(side)
                self._refuse_if_too_long(side, disturbance)
            self.buffers = self._count_rows()
            for side in self.sides:
                # The same for all sides: batches of different lengths have different edges.
                if side.buffers != self.buffers:
                    self._batches.allocate_buffers(side, self.buffers)
        with self._spent.on("capturing"):
            wanted = self.on_gpu and self._wants_graphs()
            self.graphs = wanted and all(map(self._capture, self.sides))
            for side in self.sides:
                # Its child restarted because another of its sides could not be captured.
                if side.buffers != self.buffers:
                    self._batches.warm_up(side)
                    self._batches.allocate_buffers(side, self.buffers)
            if self.sides[0].spot_check is not None and not self.graphs:
                # Another side could not be captured.
                self._batches.end_spot_check(self.sides[0])
            self._batches.hides = self.on_gpu and not self.graphs
        with self._spent.on("settling"):
            for side in self.sides:
                # Let memory and clocks settle; this batch does not count.
                batch = self._batch(side, self._count())
                if self.on_gpu:
                    first = self.graphs not in side.tuned
                    self._batches.tune_head_start(
                        side, self._order, batch, graphs=self.graphs, first=first
                    )

    def _refuse_if_too_long(self, side: Side, disturbance: Callable[[], str | None]) -> None:
        """Refuse a baseline that is too slow, judging by undisturbed calls.

        Without any such calls it is timed all the same, unless a call is so slow that no
        disturbance explains it and its batches would cost too much.

        Raises:
            NotValid: the baseline is too slow.
        """
        for _ in range(ASKED):
            if self.too_long(side) is None:
                return
            disturbance()
            self._batches.estimate_call_again(side)
            reason, why = disturbance(), self.too_long(side)
            if why is not None and (reason is None or side.is_slow):
                raise NotValid(side.name, why)

    def warm_up(self) -> None:
        """Have every side that is not ready compile, side by side, before anything is timed.

        Raises:
            ContestError: a side cannot.
        """
        with self._step(BenchmarkStep.WARM_UP):
            self._warm_up()

    def _warm_up(self) -> None:
        cold = [s for s in self.sides if s.readiness in (Readiness.NEW, Readiness.COMPILED)]
        with ThreadPoolExecutor(max(len(cold), 1)) as pool:
            try:
                for done in [pool.submit(self._batches.warm_up, side) for side in cold]:
                    done.result()
            except KeyboardInterrupt:
                # Otherwise sides that still compile, or never answer, would be waited for.
                for side in cold:
                    side.child.close(wait=False)
                raise

    def _overhead(self, side: Side, *, show: bool = False) -> float:
        """Return a shortest batch's seconds beyond its device time, on the last batch's buffers."""
        # Of a single call the child would also say what memory it takes, at a cost.
        buffers = self._order[: 1 if self.graphs or side.is_slow else 2]
        known = self.known[len(self.shown) % len(self.known)] if show else {}
        if show:
            self._batches.fill(side, buffers[-1:], self.inputs.given([known]))
        batch = self._batches.run(side, buffers, graphs=self.graphs)
        if show:
            self.shown.append(ShownResult(at=known, seen=self._batches.show(side)))
        return batch.wall_s - batch.device_s

    def run(
        self,
        enough: Callable[[InterleavedBenchmark], bool],
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
        with self._step(BenchmarkStep.MEASURE):
            self._run(enough, disturbance, most=self.effort.blocks[1] if most is None else most)

    def _run(
        self,
        enough: Callable[[InterleavedBenchmark], bool],
        disturbance: Callable[[], str | None],
        *,
        most: int,
    ) -> None:
        began = self.now()
        least = self.effort.blocks[0]
        show_at = self._blocks_to_show(least)
        sample_at = self._blocks_to_sample(least) if self.samples else []
        disturbance()
        while not self._blocks.are_enough(
            seconds=self.now() - began, most=most, enough=lambda: enough(self)
        ):
            index = len(self.blocks)
            block, overheads = self._block(show=index in show_at)
            with self._spent.on("looking"):
                reason = disturbance() or self._starved(block)
            if not self._blocks.record(block, overheads, reason):
                continue
            if index >= least and self.samples and not int(self.rng.integers(1, 0, EVERY)):
                sample_at.append(index)
            for _ in range(sample_at.count(index)):
                self._spot_checked_batch()
        if self.samples:
            # A candidate that stopped working at some point has stopped by now.
            self._spot_checked_batch()

    def _starved(self, block: dict[str, tuple[Batch, ...]]) -> str | None:
        """Return why a block does not count if hosts were too slow in it.

        Then they get more time, and else no more than they need.
        """
        if not self.on_gpu:
            return None
        batches = [(side, batch) for side in self.sides for batch in block[side.name]]
        if any([self._batches.extend_head_start(*each) for each in batches]):
            return STARVED
        self._batches.shrink_head_start(batches)
        return None

    @property
    def samples(self) -> bool:
        """Return whether calls of the candidate are spot-checked."""
        return bool(self.known and self.elements)

    def _block(
        self, *, show: bool
    ) -> tuple[dict[str, tuple[Batch, ...]], dict[str, tuple[float, ...]]]:
        """Run a batch of each side in a random order, and then backwards.

        The calls of one pass have the same contents for all sides, because contents may affect the
        time.
        """
        found: dict[str, list[Batch]] = {side.name: [] for side in self.sides}
        overheads: dict[str, list[float]] = {
            side.name: [] for side in self.sides[: 2 if self.suspected else 1]
        }
        order = [self.sides[i] for i in shuffled(len(self.sides), self.rng)]
        for sides in (order, order[::-1]):
            count = self._count()
            contents = self._drawn(count * self._size)
            for side in sides:
                shows = show and side.name == self.sides[0].name and bool(found[side.name])
                found[side.name].append(self._batch(side, count, contents, show=shows))
                if side.name in overheads:
                    # A batch of a slow side is as short as can be, so its overhead hardly changes.
                    known = (
                        self.overheads[0].get(side.name) if side.is_slow and self.overheads else ()
                    )
                    # All calls of a graph are enqueued before it begins; in a longer batch only the
                    # first may be. A kernel that does not wait for the head start is caught here.
                    first = side is self.sides[0] and not overheads[side.name]
                    early = show and first and self._batches.hides and not self.samples
                    # At once, because a host's speed changes within a second.
                    overheads[side.name].append(
                        known[0] if known and not early else self._overhead(side, show=early)
                    )
        return (
            {name: tuple(batches) for name, batches in found.items()},
            {name: tuple(costs) for name, costs in overheads.items()},
        )

    def alone(
        self, names: Sequence[str], batches: int, *, settle_s: float = 0.0
    ) -> dict[str, list[float]]:
        """Return seconds of a call of these baselines, batch by batch, without the candidate.

        Args:
            names: of these baselines.
            batches: of each.
            settle_s: so long, and for one batch of each at least, nothing counts: after a pause the
                device is cool and quick for a while.
        """
        with self._step(BenchmarkStep.TIME_ALONE):
            return self._alone([s for s in self.sides[1:] if s.name in names], batches, settle_s)

    def _alone(
        self, sides: Sequence[Side], batches: int, settle_s: float
    ) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {side.name: [] for side in sides}
        began = self.now()
        settled = False
        while not settled:
            self._turn_alone(sides)
            settled = self.now() - began >= settle_s
        for _ in range(batches):
            for name, seconds in self._turn_alone(sides).items():
                found[name].append(seconds)
        return found

    def _turn_alone(self, sides: Sequence[Side]) -> dict[str, float]:
        """Return seconds of a call of each side in one batch."""
        count = self._count()
        return {side.name: self._batch(side, count).per_call_s for side in sides}

    def show_known(self, side: Side) -> Iterator[ShownResult]:
        """Return what a side computes for contents with known results; nothing is timed.

        Raises:
            ContestError: it could not go on.
        """
        for known in self.known:
            self._batches.fill(side, [0], self.inputs.given([known]))
            self._batches.run(side, [0])
            yield ShownResult(at=known, seen=self._batches.show(side))

    def measure_warm(self) -> None:
        """Time calls on inputs that stay in the caches, for sides not yet timed so."""
        with self._step(BenchmarkStep.TIME_WARM_CACHES):
            self._measure_warm()

    def _measure_warm(self) -> None:
        for side in self.sides if self.effort.warm else ():
            if side.warm_s is not None:
                continue
            slow = side.is_slow
            calls = side.buffers // GROUPS if self.graphs else max(4, min(side.buffers, 64))
            if side.warm_up_s > self.effort.batch_s:
                calls = min(calls, 2)
            calls = 1 if slow else calls
            buffers = [WARM] if self.graphs else [0] * calls
            self._batches.fill(side, [0], self.inputs.draw(self.rng, 1))
            batches = [self._batches.run(side, buffers, graphs=self.graphs, calls=calls)]
            while len(batches) < WARM_BATCHES and not slow:
                batches.append(self._batches.run(side, buffers, graphs=self.graphs, calls=calls))
            side.warm_s = min(batch.per_call_s for batch in batches)

    def _blocks_to_show(self, least: int) -> set[int]:
        """Return the blocks whose last batch of the candidate is graded."""
        if not self.known:
            return set()
        shown = 1 if self.samples and sum(self.elements) > LARGE else self.effort.shown
        picks = self.rng.integers(max(shown - 1, 0), 0, least).tolist()
        return {least - 1, *picks}

    def _blocks_to_sample(self, least: int) -> list[int]:
        if self.graphs:
            size = self.buffers // GROUPS
            spot_checks = len(checked_groups(self.buffers)) * count_checked(size)
        else:
            spot_checks = count_checked(max(self.buffers // 2, 1))
        return batches_to_check(self.effort.spot_checks, spot_checks, blocks=least, rng=self.rng)

    def _count_rows(self) -> int:
        """Use as many buffers as baselines have, unless batches would be far too long or short.

        They are if an earlier candidate was much slower, or faster, than all others.
        """
        there = next((s.buffers for s in self.sides if s.buffers), 0)
        wanted = count_buffers(
            self.effort,
            buffer_bytes=self.inputs.buffer_bytes,
            fastest_s=min(side.warm_up_s for side in self.sides),
            slowest_s=max(side.warm_up_s for side in self.sides),
        )
        return there if wanted < REMADE * there < REMADE**2 * wanted else wanted

    def _wants_graphs(self) -> bool:
        return self._are_short and self.buffers >= LEAST_CAPTURED

    @property
    def _are_short(self) -> bool:
        """Return whether the calls of any side are short enough for graphs."""
        return min(side.warm_up_s for side in self.sides) < self.effort.graph_below_s

    @property
    def why_not_captured(self) -> str | None:
        """Return why calls short enough for graphs are made one by one; None if they are not."""
        if self.graphs or not self.on_gpu or not self._are_short:
            return None
        if self.buffers < LEAST_CAPTURED:
            return f"memory holds inputs for {self.buffers} calls; graphs take {LEAST_CAPTURED}"
        return next((side.why_not_captured for side in self.sides if side.why_not_captured), None)

    def _capture(self, side: Side) -> bool:
        if side is self.sides[0] and self.samples:
            sources = sources_of(self.known)
            return self._batches.capture(side, elements=self.elements, sources=sources)
        return self._batches.capture(side)

    def _count(self) -> int:
        """Draw how many buffers or captured groups a batch uses; no side can foresee it."""
        most = GROUPS if self.graphs else self.buffers
        least = math.ceil(most / 2)
        return least + int(self.rng.integers(1, 0, most - least + 1))

    @property
    def _size(self) -> int:
        """Return how many calls a captured group has, or a batch for each buffer that it uses."""
        return self.buffers // GROUPS if self.graphs else 1

    def _drawn(self, calls: int) -> Contents:
        with self._spent.on("contents"):
            return self.inputs.draw(self.rng, calls)

    def _batch(
        self, side: Side, count: int, contents: Contents | None = None, *, show: bool = False
    ) -> Batch:
        """Run a batch over `count` buffers or groups in random order; draw contents if left out."""
        if self.graphs:
            return self._batch_over(side, shuffled(GROUPS, self.rng)[:count], contents, show=show)
        order = [SPARE + i for i in shuffled(side.buffers, self.rng)[:count]]
        return self._batch_over(side, order, contents, show=show)

    def _batch_over(
        self,
        side: Side,
        order: list[int],
        contents: Contents | None = None,
        *,
        show: bool = False,
    ) -> Batch:
        buffers = [buffer for g in order for buffer in side.groups[g]] if self.graphs else order
        self._order = order
        contents = contents or self._drawn(len(buffers))
        if show:
            contents = contents.ending_with(self.known[len(self.shown) % len(self.known)])
        with self._spent.on("contents"):
            self._batches.fill(side, buffers, contents)
        batch = self._batches.run(side, order, graphs=self.graphs, calls=len(buffers))
        if show:
            self.shown.append(ShownResult(at=contents[-1], seen=self._batches.show(side)))
        return batch

    def _spot_checked_batch(self) -> None:
        """Run a batch of the candidate that looks like any other, and keep spots of its results."""
        side = self.sides[0]
        count = self._count()
        if self.graphs:
            order = shuffled(GROUPS, self.rng)[:count]
            places = shuffled(count, self.rng)
            for place, group in zip(places, checked_groups(side.buffers), strict=False):
                order[place] = group
        else:
            order = [SPARE + i for i in shuffled(side.buffers, self.rng)[:count]]
            self._batches.begin_spot_check(
                side, [order], elements=self.elements, sources=sources_of(self.known)
            )
        first = int(self.rng.integers(1, 0, len(self.known)))
        known = [self.known[(first + i) % len(self.known)] for i in range(sources_of(self.known))]
        self._batches.fill(side, range(len(known)), self.inputs.given(known))
        self._batch_over(side, order)
        seen = self._batches.show_spot_check(side)
        assert side.spot_check is not None
        at = tuple(known[source] for source in side.spot_check.sources)
        self.spot_checks.append(SpotChecked(at=at, spots=side.spot_check.spots, seen=seen))
        if not self.graphs:
            self._batches.end_spot_check(side)
        # As after any other batch.
        self._overhead(side)
