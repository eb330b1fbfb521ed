"""Candidate and baselines timed side by side: their batches interleave, each in its own process.

A benchmark is on one case. A block is a batch of each side and then, backwards, a batch of each
again, so a drift of the clocks hits all alike. Device events within the batch give its time. They
are the child's claims: the judge checks them against the wall time around batches of random numbers
of calls.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice

from kerneltruth.clock.integrity.spot_checks import EVERY
from kerneltruth.clock.protocol.buffers import GROUPS, WARM, shuffled
from kerneltruth.clock.protocol.sides import Batch, Side
from kerneltruth.clock.schedule.batches import BenchmarkBatches
from kerneltruth.clock.schedule.phase import BenchmarkStep, Phase, after, after_failure
from kerneltruth.clock.schedule.preparation import compile_sides, prepare_sides

# How many calls on cached inputs are timed; the fastest counts.
WARM_BATCHES = 3
# Time limit of a loop, in what it is expected to take.
LOOP_DEADLINE = 10
STARVED = "a host was slower than the device"

# For each side its batches of one block, by the side's name; and the overheads, in seconds, of the
# shortest batches that followed some of them.
BatchesOf = dict[str, tuple[Batch, ...]]
OverheadsOf = dict[str, tuple[float, ...]]


def _calm() -> str | None:
    return None


@dataclass(slots=True, kw_only=True)
class InterleavedBenchmark(BenchmarkBatches):
    """A benchmark in progress.

    Attributes:
        phase: how far it has come.
        too_long: says why a baseline whose calls were estimated takes too long, if it does.
        suspected: whether overheads of the first baseline are measured, too.
        blocks: the batches of the blocks that count; `overheads` those of shortest batches.
        disturbed: why other blocks were thrown away and repeated.
    """

    phase: Phase = Phase.CREATED
    too_long: Callable[[Side], str | None] = lambda side: None
    suspected: bool = False
    blocks: list[BatchesOf] = field(default_factory=list)
    overheads: list[OverheadsOf] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def _step(self, step: BenchmarkStep) -> Iterator[None]:
        phase, self.phase = after(self.phase, step), after_failure(self.phase, step)
        yield
        self.phase = phase

    @property
    def spent(self) -> dict[str, float]:
        """Return seconds of each step of the preparation, and of parts of all batches.

        Those of batches are contents, calls (see `BatchRunner.spent`), and asking what disturbed.
        """
        return {**self.seconds, **self.runner.spent}

    def warm_up(self) -> None:
        """Have every side that is not ready compile, side by side, before anything is timed.

        Raises:
            SideError: a side cannot.
        """
        with self._step(BenchmarkStep.WARM_UP):
            compile_sides(self)

    def prepare(self, disturbance: Callable[[], str | None] = _calm) -> None:
        """Prepare all sides: allocate inputs, compile, and decide how calls are made.

        Raises:
            SideError: a side cannot.
            NotValid: a side is no valid baseline.
        """
        with self._step(BenchmarkStep.PREPARE):
            prepare_sides(self, self.too_long, disturbance)

    def run(
        self,
        enough: Callable[[InterleavedBenchmark], bool],
        disturbance: Callable[[], str | None] = _calm,
        *,
        most: int | None = None,
    ) -> None:
        """Run blocks until there are enough, or the budget is spent.

        `enough` is asked past the fewest blocks only. `disturbance` says what disturbed the device
        since it was last asked, if anything did: such a block is repeated. `most` counts blocks in
        all, if more than the effort allows.
        """
        with self._step(BenchmarkStep.MEASURE):
            least, usual = self.effort.blocks
            began = self.now()
            show_at, check_at = self.blocks_to_show(least), self.blocks_to_check(least)
            disturbance()
            while not self._are_enough(self.now() - began, usual if most is None else most, enough):
                index = len(self.blocks)
                block, overheads = self._block(show=index in show_at)
                with self.seconds.on("looking"):
                    reason = disturbance() or self._starved(block)
                if reason is not None and len(self.disturbed) < self.effort.repeats:
                    self.disturbed.append(reason)
                    continue
                # A device that disturbs this many does not get calmer: further blocks count.
                self.blocks.append(block)
                self.overheads.append(overheads)
                for _ in range(self._spot_checks_due(index, check_at)):
                    self.run_spot_checked()
            if self.checks:
                # A candidate that stopped working at some point has stopped by now.
                self.run_spot_checked()

    def _spot_checks_due(self, index: int, check_at: Sequence[int]) -> int:
        """Return how many spot-checked batches follow a block: drawn past those of `check_at`."""
        if index < self.effort.blocks[0] or not self.checks:
            return check_at.count(index)
        return int(not int(self.rng.integers(1, 0, EVERY)))

    def _are_enough(
        self, seconds: float, most: int, enough: Callable[[InterleavedBenchmark], bool]
    ) -> bool:
        """Return whether no further block is needed, `seconds` after the first began."""
        count = len(self.blocks)
        if count >= most or count < self.effort.blocks[0]:
            return count >= most
        return seconds > self.effort.budget_s or enough(self)

    def _starved(self, block: BatchesOf) -> str | None:
        """Return why a block does not count if hosts were too slow in it.

        Then they get more time, and else no more than they need.
        """
        if not self.on_gpu:
            return None
        batches = [(side, batch) for side in self.sides for batch in block[side.name]]
        if any([self.runner.extend_head_start(*each) for each in batches]):
            return STARVED
        self.runner.shrink_head_start(batches)
        return None

    def _block(self, *, show: bool) -> tuple[BatchesOf, OverheadsOf]:
        """Run a batch of each side in a random order, and then backwards.

        The calls of one pass have the same contents for all sides, because contents may affect the
        time.
        """
        found: dict[str, list[Batch]] = {side.name: [] for side in self.sides}
        followed = self.sides[: 2 if self.suspected else 1]
        overheads: dict[str, list[float]] = {side.name: [] for side in followed}
        order = [self.sides[i] for i in shuffled(len(self.sides), self.rng)]
        for sides in (order, order[::-1]):
            count = self.draw_count()
            contents = self.draw_contents(count)
            for side in sides:
                first, shows = not found[side.name], show and side is self.sides[0]
                found[side.name].append(
                    self.run_batch(side, self.draw_order(count), contents, show=shows and not first)
                )
                if side.name in overheads:
                    # At once, because a host's speed changes within a second.
                    overheads[side.name].append(self._overhead(side, show=shows and first))
        return (
            {name: tuple(batches) for name, batches in found.items()},
            {name: tuple(costs) for name, costs in overheads.items()},
        )

    def _overhead(self, side: Side, *, show: bool) -> float:
        # All calls of a graph are enqueued before it begins; in a longer batch only the first may
        # be. A kernel that does not wait for the head start is caught here.
        early = show and self.runner.hides and not self.checks
        # A batch of a slow side is as short as can be, so its overhead hardly changes.
        known = self.overheads[0].get(side.name) if side.is_slow and self.overheads else ()
        return known[0] if known and not early else self.overhead(side, show=early)

    def time_without_candidate(
        self, names: Sequence[str], batches: int, *, settle_s: float = 0.0
    ) -> dict[str, list[float]]:
        """Return seconds of a call of these baselines, batch by batch, without the candidate.

        For `settle_s`, and for one batch of each at least, nothing counts: after a pause the device
        is cool and quick for a while.
        """
        with self._step(BenchmarkStep.TIME_ALONE):
            sides = [s for s in self.sides[1:] if s.name in names]
            began = self.now()
            self._batch_of_each(sides)
            while self.now() - began < settle_s:
                self._batch_of_each(sides)
            found = [self._batch_of_each(sides) for _ in range(batches)]
            return {side.name: [seconds[side.name] for seconds in found] for side in sides}

    def _batch_of_each(self, sides: Sequence[Side]) -> dict[str, float]:
        count = self.draw_count()
        return {
            side.name: self.run_batch(side, self.draw_order(count)).per_call_s for side in sides
        }

    def measure_warm(self) -> None:
        """Time calls on inputs that stay in the caches, for sides not yet timed so."""
        with self._step(BenchmarkStep.TIME_WARM_CACHES):
            for side in self.sides if self.effort.warm else ():
                if side.warm_s is None:
                    side.warm_s = self._warm_seconds(side)

    def loop(self, side: Side, seconds: float, *, call_s: float) -> Batch:
        """Make calls of a side for about `seconds`, in one batch over its buffers in turn.

        A call is taken to last `call_s`, as it was timed.

        Raises:
            SideError: the side cannot go on.
        """
        with self._step(BenchmarkStep.LOOP):
            size = self.buffers // GROUPS if self.graphs else 1
            order = self.draw_order(GROUPS if self.graphs else self.buffers)
            buffers = [buffer for g in order for buffer in side.groups[g]] if self.graphs else order
            self.runner.fill(side, buffers, self.draw_contents(len(order)))
            rounds = math.ceil(seconds / call_s / size)
            return self.runner.run(
                side,
                [*islice(cycle(order), rounds)],
                graphs=self.graphs,
                calls=rounds * size,
                deadline_s=max(self.effort.deadline_s, LOOP_DEADLINE * max(seconds, call_s)),
            )

    def _warm_seconds(self, side: Side) -> float:
        calls = side.buffers // GROUPS if self.graphs else max(4, min(side.buffers, 64))
        if side.warm_up_s > self.effort.batch_s:
            calls = min(calls, 2)
        calls = 1 if side.is_slow else calls
        buffers = [WARM] if self.graphs else [0] * calls
        self.runner.fill(side, [0], self.inputs.draw(self.rng, 1))
        batches = (
            self.runner.run(side, buffers, graphs=self.graphs, calls=calls)
            for _ in range(1 if side.is_slow else WARM_BATCHES)
        )
        return min(batch.per_call_s for batch in batches)
