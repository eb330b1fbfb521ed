"""What one side of a benchmark does: allocates buffers, captures graphs, runs batches.

`benchmark` decides which side does what when.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kerneltruth.cases.philox import Stream, stream
from kerneltruth.clock.integrity.disturbance import was_starved
from kerneltruth.clock.integrity.spot_checks import spot_check_of
from kerneltruth.clock.integrity.valid_baselines import NotValid, why_elsewhere
from kerneltruth.clock.protocol.buffers import (
    MOST_BUFFERS,
    SPARE,
    checked_groups,
    count_all_buffers,
    groups_of,
    shuffled,
)
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import BenchInputs, Contents
from kerneltruth.clock.protocol.operators import operators_in
from kerneltruth.clock.protocol.sides import Batch, Side, SideError
from kerneltruth.runner.protocol import Observation
from kerneltruth.runner.timing.messages import (
    AllocateBuffers,
    CaptureGraphs,
    CountOperators,
    PrepareInputs,
    RunBatch,
    ShowResult,
    SpotCheck,
    Supply,
)

# How many times less than the judge saw a call may claim to take, where that sizes batches.
CLAIM_FACTOR = 8
# How often calls are looked at, at most, to see them without their host.
LOOKS = 3
FIRST_S = 300.0
# The device is kept busy at least this long before a batch's first call: a host that has just woken
# takes much of it to enqueue that call, and the share differs from process to process.
HEAD_START_S = 5e-4
# And at most, where a host takes longer to enqueue calls than the device to run them.
MOST_HEAD_START_S = 2e-2
# A host that takes more than so many times that for a batch gets its longest head start at once.
HOPELESS = 2
# Hosts are quicker at one time than at another.
SPARE_TIME = 1.5
# Calls that take longer are made as rarely as can be.
SLOW_S = 0.1
# How many calls are looked at once more, at least and at most, and for how long beyond the fewest.
AGAIN = (2, 6)
AGAIN_S = 0.5
# What the seconds of batches are told by.
PARTS = ("calls", "device", "ahead")


@dataclass(slots=True, kw_only=True)
class BatchRunner:
    """Asks children of a benchmark for batches.

    Attributes:
        now: the judge's clock, in seconds.
        ahead_s: for which a batch's first call waits on the device, the same for every side.
        hides: whether contents are hidden meanwhile; a graph's calls cannot begin before it ends.
        gauged: how many calls it took to gauge the last side.
        spent: seconds that went into batches: with all around them (`calls`), and within these by
            the device's events (`device`) and waiting for the host (`ahead`).
    """

    inputs: BenchInputs
    effort: Effort
    rng: Stream
    on_gpu: bool
    now: Callable[[], float] = time.perf_counter
    head_start_s: float = HEAD_START_S
    hides: bool = False
    last_calls: int = SPARE
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))

    def warm_up(self, side: Side) -> None:
        """Stock a child, and have it compile: the first two calls.

        A child that is stocked has compiled before.
        """
        side.warm_s = None
        allowed_s = max(FIRST_S, self.effort.deadline_s)
        if not side.has_inputs:
            stock = PrepareInputs(
                arguments=self.inputs.arguments,
                slot=side.slot,
                flush_bytes=self.effort.flush_bytes if self.on_gpu else 0,
                compiled=side.compiled,
            )
            side.do(stock, allowed_s)
        side.do(AllocateBuffers(count=SPARE, slot=side.slot), allowed_s)
        contents = self.inputs.draw(stream(0, "warm-up", side.name), SPARE)
        self.refill(side, range(SPARE), contents)
        first_s = self.batch(side, [0], deadline_s=allowed_s).wall_s
        # In another process, or a second time, it finds compiled what the first had to compile.
        side.first_s = side.first_s or first_s
        side.second_s = self.batch(side, [1], deadline_s=allowed_s).wall_s
        self._examine(side, allowed_s)
        side.has_inputs = side.warmed_up = True

    def _examine(self, side: Side, allowed_s: float) -> None:
        """Have a baseline that is to be examined tell what it runs, and where."""
        if not (self.on_gpu and side.examined):
            return
        if side.ran is None:
            side.ran = operators_in(side.do(CountOperators(slot=side.slot), allowed_s))
        why = why_elsewhere(side.ran)
        if why is not None:
            raise NotValid(side.name, why)
        if side.ran.waits:
            # To try would cost a process, and all that it has compiled.
            side.captured, side.why_not = False, f"{side.name}: it waits for the device in a call"

    def estimate_call(self, side: Side) -> None:
        """About how long a call takes, by ever longer batches while nobody else is at work.

        A host that has been waiting is slow for a moment: while the device may have waited for it,
        the same is looked at again.
        """
        # A call that takes that long shows how long it takes, and more of them cost too much; so do
        # more looks at a host that waits for the device in each call.
        waits = side.ran is not None and bool(side.ran.waits)
        looks = 1 if waits or side.second_s > SLOW_S else LOOKS
        # As many as the side before needed, if that takes no long.
        known = min(self.last_calls, int(SLOW_S / max(side.second_s, 1e-6)))
        calls = 1 if side.second_s > self.effort.batch_s else max(SPARE, known)
        head_start_s = self.head_start_s
        least_s = side.launch_s = math.inf
        while True:
            batch = self.batch(side, [i % SPARE for i in range(calls)])
            waited = self.head_start_s - head_start_s
            # Who claims to take no time must not make everyone's batches long.
            seen_s = max(batch.device_s, (batch.wall_s - waited - side.second_s) / CLAIM_FACTOR)
            least_s = min(least_s, seen_s)
            side.launch_s = min(side.launch_s, batch.host_s / calls)
            if least_s < self.effort.batch_s / 4 and calls < MOST_BUFFERS:
                calls, least_s = 4 * calls, math.inf
            elif looks > 1 and self.on_gpu and was_starved(batch):
                looks -= 1
            else:
                break
            # Of calls so short that this does not suffice there are as many as can be in any case.
            self.head_start_s = max(
                self.head_start_s, min(_needed(batch, calls), MOST_HEAD_START_S / 4)
            )
        self.head_start_s = head_start_s
        self.last_calls = calls
        side.warm_up_s = least_s / calls

    def estimate_call_again(self, side: Side) -> None:
        """How long a call takes at least: the quickest of a few calls, one by one, says so.

        Of baselines only: what the child claims of its calls is taken for true.
        """
        head_start_s, began = self.head_start_s, self.now()
        least, most = AGAIN
        for i in range(most):
            if i >= least and self.now() - began > AGAIN_S:
                break
            batch = self.batch(side, [i % SPARE])
            side.warm_up_s = min(side.warm_up_s, batch.device_s)
            if self.on_gpu and was_starved(batch):
                self.head_start_s = max(
                    self.head_start_s, min(_needed(batch, 1), MOST_HEAD_START_S / 4)
                )
        self.head_start_s = head_start_s

    def allocate_buffers(self, side: Side, buffers: int) -> None:
        """Make rows for the calls of batches, in place of those there are."""
        side.do(
            AllocateBuffers(count=count_all_buffers(buffers), slot=side.slot),
            self.effort.deadline_s,
        )
        side.forget_buffers()
        side.buffers = buffers

    def capture(self, side: Side, *, elements: tuple[int, ...] = (), sources: int = 0) -> bool:
        """Capture the calls of a side in graphs, unless that was tried before.

        Args:
            side: whose calls.
            elements: see `spot_check_of`; none if no calls are sampled.
            sources: see `spot_check_of`.
        """
        if side.captured is None:
            try:
                self.refill(side, range(SPARE), self.inputs.draw(self.rng, SPARE))
                self.batch(side, range(SPARE))
                side.groups = groups_of(side.buffers, self.rng)
                if elements:
                    spot_checks = [side.groups[i] for i in checked_groups(side.buffers)]
                    self.begin_spot_check(side, spot_checks, elements=elements, sources=sources)
                order = tuple(shuffled(len(side.groups), self.rng))
                capture = CaptureGraphs(groups=side.groups, order=order, slot=side.slot)
                side.do(capture, self.effort.deadline_s)
                side.captured = True
            except SideError as error:
                if error.seen.ended in ("died", "timeout", "lost"):
                    raise
                # What was begun may have broken the child's CUDA context.
                side.captured, side.why_not = False, str(error)
                # Before: a child that is shared forgets those of all its sides.
                buffers = side.buffers
                side.child.restart()
                side.has_inputs = False
                self.warm_up(side)
                self.allocate_buffers(side, buffers)
        return side.captured

    def extend_head_start(self, side: Side, batch: Batch) -> bool:
        """Have all batches wait longer if the device may have waited for the host in this one.

        The head start at most doubles: a host that was stopped once is as quick afterwards, and a
        long head start makes the judge's clock less exact. Stop adjusting for hosts that cannot get
        ahead: their calls wait for the device themselves, or they are that slow.

        Returns:
            Whether batches wait longer now.
        """
        if side.waits or not was_starved(batch):
            return False
        side.waits = batch.head_start_s >= MOST_HEAD_START_S
        step = (
            MOST_HEAD_START_S
            if batch.host_s > HOPELESS * MOST_HEAD_START_S
            else 2 * batch.head_start_s
        )
        longer = min(_needed(batch, side.buffers), step, MOST_HEAD_START_S)
        self.head_start_s = max(self.head_start_s, longer)
        return not side.waits

    def tune_head_start(
        self, side: Side, buffers: Sequence[int], batch: Batch, *, graphs: bool, first: bool
    ) -> None:
        """Find out how far ahead of the device a host must be, by this batch and others like it.

        If it is the `first` of its kind on these rows, by others only: it has allocated memory, or
        brought graphs to the device, and no other takes as long.
        """
        before, side.waits = self.head_start_s, side.ran is not None and side.ran.waits > 0
        side.settled.add(graphs)
        if side.waits:
            return
        if first:
            batch = self.batch(side, buffers, graphs=graphs, calls=batch.calls)
        while self.extend_head_start(side, batch):
            batch = self.batch(side, buffers, graphs=graphs, calls=batch.calls)
        if side.waits:
            self.head_start_s = before
        else:
            # Other batches have more calls, and hosts that were busy for a moment no longer are.
            needed = min(_needed(batch, side.buffers), MOST_HEAD_START_S)
            self.head_start_s = max(before, needed)

    def shrink_head_start(self, block: Sequence[tuple[Side, Batch]]) -> None:
        """Have batches wait no longer than the hosts of this block needed."""
        needed = (_needed(batch, side.buffers) for side, batch in block if not side.waits)
        self.head_start_s = min(self.head_start_s, max(needed, default=HEAD_START_S))
        self.head_start_s = max(self.head_start_s, HEAD_START_S)

    def begin_spot_check(
        self,
        side: Side,
        groups: Sequence[Sequence[int]],
        *,
        elements: tuple[int, ...],
        sources: int,
    ) -> None:
        """From now on some of these calls are sampled; see `spot_check_of`."""
        side.spot_check = spot_check_of(
            groups, elements=elements, sources=sources, slot=side.slot, rng=self.rng
        )
        side.do(side.spot_check, self.effort.deadline_s)

    def end_spot_check(self, side: Side) -> None:
        """No call is sampled any more."""
        side.spot_check = None
        side.do(SpotCheck(slot=side.slot), self.effort.deadline_s)

    def show(self, side: Side) -> Observation:
        """What the last call of the last batch gave."""
        sizes = {
            a.name: math.prod(a.shape) * self.inputs.pools[a.name].elements.element_size()
            for a in self.inputs.arguments
            if isinstance(a, Supply) and a.shown
        }
        return side.child.errand(
            ShowResult(slot=side.slot), sizes=sizes, deadline_s=self.effort.deadline_s
        )

    def show_spot_check(self, side: Side) -> Observation:
        """What was kept of the sampled calls."""
        return side.do(ShowResult(spot_checks=True, slot=side.slot), self.effort.deadline_s)

    def refill(self, side: Side, buffers: Sequence[int], contents: Contents) -> None:
        """Give rows of a side these contents."""
        refill = self.inputs.refill(buffers, contents)
        side.do(replace(refill, slot=side.slot), self.effort.deadline_s)

    def batch(
        self,
        side: Side,
        buffers: Sequence[int],
        *,
        graphs: bool = False,
        calls: int | None = None,
        deadline_s: float | None = None,
    ) -> Batch:
        """A batch over rows, or with `graphs` over groups of them, which are so many calls."""
        head_start_s = self.head_start_s if self.on_gpu else 0.0
        message = RunBatch(
            buffers=tuple(buffers),
            graphs=graphs,
            head_start_s=head_start_s,
            hidden=self.hides,
            slot=side.slot,
        )
        began = self.now()
        seen = side.do(message, deadline_s or self.effort.deadline_s)
        wall = self.now() - began
        side.peak_bytes = max(side.peak_bytes, int(seen.timings.get("peak_bytes", 0)))
        batch = Batch(
            calls=calls or len(buffers),
            wall_s=wall,
            device_s=seen.timings.get("device_s", wall),
            host_s=seen.timings.get("host_s", wall),
            head_start_s=head_start_s,
        )
        for part, seconds in zip(PARTS, (wall, batch.device_s, head_start_s), strict=True):
            self.spent[part] += seconds
        return batch


def _needed(batch: Batch, calls: int) -> float:
    """How long the first of so many calls must wait for all of them to be there."""
    return SPARE_TIME * batch.host_s / batch.calls * calls
