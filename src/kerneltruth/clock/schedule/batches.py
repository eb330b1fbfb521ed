"""The batches of a benchmark: which buffers each uses, with which contents, and which are checked.

Every batch calls one side a random number of times; each call finds inputs in memory of its own,
with contents that no earlier call saw, and cold caches. Spot-checked batches run between the
measured ones, and look like them. A candidate that leaves out work therefore leaves it out there,
too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kerneltruth.cases.philox import Stream
from kerneltruth.cases.pools import Choice
from kerneltruth.clock.integrity.spot_checks import (
    SpotChecked,
    batches_to_check,
    count_checked,
    sources_of,
)
from kerneltruth.clock.protocol.buffers import (
    GROUPS,
    LEAST_CAPTURED,
    SPARE,
    checked_groups,
    shuffled,
)
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import BenchInputs, Contents
from kerneltruth.clock.protocol.sides import Batch, ShownResult, Side
from kerneltruth.clock.schedule.batch_runner import BatchRunner
from kerneltruth.clock.schedule.stopwatch import Stopwatch

# With larger outputs, results are graded once instead of spot-checked: grading takes long.
LARGE = 2**20


@dataclass(slots=True, kw_only=True)
class BenchmarkBatches:
    """The sides of a benchmark, and the batches that they run.

    Attributes:
        sides: the candidate first.
        known: contents with known results, for the batches that are shown.
        elements: how many each output has, where the judge can tell for each whether it is right;
            none where it cannot, and then no call is spot-checked.
        graphs: whether the calls are captured.
        spot_checks: what was kept of checked calls.
        seconds: what each step of the preparation took, drawing contents, and asking what
            disturbed.
    """

    sides: list[Side]
    inputs: BenchInputs
    effort: Effort
    rng: Stream
    known: Sequence[dict[str, Choice]] = ()
    elements: tuple[int, ...] = ()
    on_gpu: bool = True
    graphs: bool = False
    buffers: int = 0
    now: Callable[[], float] = time.perf_counter
    shown: list[ShownResult] = field(default_factory=list)
    spot_checks: list[SpotChecked] = field(default_factory=list)
    seconds: Stopwatch = field(init=False)
    runner: BatchRunner = field(init=False)
    _last_order: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seconds = Stopwatch(self.now)
        self.runner = BatchRunner(
            inputs=self.inputs,
            effort=self.effort,
            rng=self.rng,
            on_gpu=self.on_gpu,
            now=self.now,
        )

    @property
    def are_short(self) -> bool:
        """Return whether the calls of any side are short enough for graphs."""
        return min(side.warm_up_s for side in self.sides) < self.effort.graph_below_s

    @property
    def why_not_captured(self) -> str | None:
        """Return why calls short enough for graphs are made one by one; None if they are not."""
        if self.graphs or not self.on_gpu or not self.are_short:
            return None
        if self.buffers < LEAST_CAPTURED:
            return f"memory holds inputs for {self.buffers} calls; graphs take {LEAST_CAPTURED}"
        return next((s.why_not_captured for s in self.sides if s.why_not_captured), None)

    def draw_count(self) -> int:
        """Draw how many buffers or captured groups a batch uses; no side can foresee it."""
        most = GROUPS if self.graphs else self.buffers
        least = math.ceil(most / 2)
        return least + int(self.rng.integers(1, 0, most - least + 1))

    def draw_order(self, count: int) -> list[int]:
        """Draw `count` buffers or captured groups, in random order."""
        if self.graphs:
            return shuffled(GROUPS, self.rng)[:count]
        return [SPARE + i for i in shuffled(self.buffers, self.rng)[:count]]

    def draw_contents(self, count: int) -> Contents:
        """Draw contents for the calls of `count` buffers or captured groups."""
        size = self.buffers // GROUPS if self.graphs else 1
        with self.seconds.on("contents"):
            return self.inputs.draw(self.rng, count * size)

    def run_batch(
        self,
        side: Side,
        order: list[int],
        contents: Contents | None = None,
        *,
        show: bool = False,
    ) -> Batch:
        """Run a batch over these buffers or groups; draw its contents if they are left out.

        With `show`, the final call gets known contents, and its result is kept.
        """
        buffers = [buffer for g in order for buffer in side.groups[g]] if self.graphs else order
        self._last_order = order
        contents = contents or self.draw_contents(len(order))
        if show:
            contents = contents.ending_with(self._known_next())
        with self.seconds.on("contents"):
            self.runner.fill(side, buffers, contents)
        batch = self.runner.run(side, order, graphs=self.graphs, calls=len(buffers))
        if show:
            self.shown.append(ShownResult(at=contents[-1], seen=self.runner.show(side)))
        return batch

    def tune_head_start(self, side: Side) -> None:
        """Run a batch that does not count, to settle clocks and find the head start."""
        batch = self.run_batch(side, self.draw_order(self.draw_count()))
        if self.on_gpu:
            first = self.graphs not in side.tuned
            self.runner.tune_head_start(
                side, self._last_order, batch, graphs=self.graphs, first=first
            )

    def overhead(self, side: Side, *, show: bool = False) -> float:
        """Return a shortest batch's seconds beyond its device time, on the last batch's buffers."""
        # A batch of one call would also measure its memory, which costs time.
        buffers = self._last_order[: 1 if self.graphs or side.is_slow else 2]
        known = self._known_next() if show else {}
        if show:
            self.runner.fill(side, buffers[-1:], self.inputs.given([known]))
        batch = self.runner.run(side, buffers, graphs=self.graphs)
        if show:
            self.shown.append(ShownResult(at=known, seen=self.runner.show(side)))
        return batch.wall_s - batch.device_s

    def _known_next(self) -> dict[str, Choice]:
        return self.known[len(self.shown) % len(self.known)]

    def show_known(self, side: Side) -> Iterator[ShownResult]:
        """Return what a side computes for contents with known results; nothing is timed.

        Raises:
            SideError: it could not go on.
        """
        for known in self.known:
            self.runner.fill(side, [0], self.inputs.given([known]))
            self.runner.run(side, [0])
            yield ShownResult(at=known, seen=self.runner.show(side))

    @property
    def checks(self) -> bool:
        """Return whether calls of the candidate are spot-checked."""
        return bool(self.known and self.elements)

    def blocks_to_show(self, least: int) -> set[int]:
        """Return the blocks, of the first `least`, whose last candidate batch is graded."""
        if not self.known:
            return set()
        shown = 1 if self.checks and sum(self.elements) > LARGE else self.effort.shown
        picks = self.rng.integers(max(shown - 1, 0), 0, least).tolist()
        return {least - 1, *picks}

    def blocks_to_check(self, least: int) -> list[int]:
        """Return the blocks, of the first `least`, that a spot-checked batch follows."""
        if not self.checks:
            return []
        if self.graphs:
            calls = len(checked_groups(self.buffers)) * count_checked(self.buffers // GROUPS)
        else:
            calls = count_checked(max(self.buffers // 2, 1))
        return batches_to_check(self.effort.spot_checks, calls, blocks=least, rng=self.rng)

    def run_spot_checked(self) -> None:
        """Run a batch of the candidate that looks like any other, and keep spots of its results."""
        side, sources = self.sides[0], sources_of(self.known)
        order = self.draw_order(self.draw_count())
        if self.graphs:
            places = shuffled(len(order), self.rng)
            for place, group in zip(places, checked_groups(self.buffers), strict=False):
                order[place] = group
        else:
            self.runner.begin_spot_check(side, [order], elements=self.elements, sources=sources)
        first = int(self.rng.integers(1, 0, len(self.known)))
        known = [self.known[(first + i) % len(self.known)] for i in range(sources)]
        self.runner.fill(side, range(sources), self.inputs.given(known))
        self.run_batch(side, order)
        seen = self.runner.show_spot_check(side)
        assert side.spot_check is not None
        at = tuple(known[source] for source in side.spot_check.sources)
        self.spot_checks.append(SpotChecked(at=at, spots=side.spot_check.spots, seen=seen))
        if not self.graphs:
            self.runner.end_spot_check(side)
        # As after any other batch.
        self.overhead(side)
