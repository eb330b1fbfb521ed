"""Run one side of a benchmark: allocate buffers, capture graphs, run batches.

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
from kerneltruth.clock.protocol.sides import (
    SLOW_S,
    Batch,
    ChildEvent,
    Graphs,
    Readiness,
    Side,
    SideError,
)
from kerneltruth.runner.observation import Observation
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

# If claims are below the judge's time by this factor, they no longer determine batch sizes.
MOST_UNDERSTATED = 8
# At most this many estimates of a call's time without its host.
MOST_ESTIMATES = 3
# Keep the device busy at least this long before a batch's first call: a host that has just woken
# takes much of it to enqueue that call, and the share differs from process to process.
HEAD_START_S = 5e-4
# And at most this long, if a host enqueues calls more slowly than the device runs them.
MOST_HEAD_START_S = 2e-2
# A host that takes this many times longer for a batch gets the longest head start at once.
HOPELESS = 2
# Head start over enqueueing time, since the speed of hosts varies.
SPARE_TIME = 1.5
# Fewest and most calls of a second estimate, and the seconds after which it stops at the fewest.
RE_ESTIMATES = (2, 6)
RE_ESTIMATE_S = 0.5
# The keys of `BatchRunner.spent`.
PARTS = ("calls", "device", "ahead")


@dataclass(slots=True, kw_only=True)
class BatchRunner:
    """Runs batches of one side at a time, and prepares the side for them.

    Attributes:
        head_start_s: seconds for which the device is kept busy before a batch's first call, the
            same for every side.
        hides: whether inputs hold noise during the head start; the calls of a graph cannot begin
            before it ends, so graphs need none.
        last_calls: how many calls it took to estimate the time of the last side's.
        spent: seconds of all batches, as the judge sees them (`calls`), and of these the parts by
            the device's events (`device`) and of head starts (`ahead`).
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
        """Give a child its inputs, unless it has them, and make two calls: the first compiles."""
        side.warm_s = None
        allowed_s = max(self.effort.first_call_s, self.effort.deadline_s)
        if side.readiness is Readiness.NEW:
            inputs = PrepareInputs(
                arguments=self.inputs.arguments,
                slot=side.slot,
                flush_bytes=self.effort.flush_bytes if self.on_gpu else 0,
                compiled=side.compiled,
            )
            side.do(inputs, allowed_s)
        side.do(AllocateBuffers(count=SPARE, slot=side.slot), allowed_s)
        contents = self.inputs.draw(stream(0, "warm-up", side.name), SPARE)
        self.fill(side, range(SPARE), contents)
        first_s = self.run(side, [0], deadline_s=allowed_s).wall_s
        # A second warm-up, or one in another process, finds compiled what the first compiled.
        side.first_s = side.first_s or first_s
        side.second_s = self.run(side, [1], deadline_s=allowed_s).wall_s
        self._examine(side, allowed_s)
        side.advance(ChildEvent.WARMED_UP)

    def _examine(self, side: Side, allowed_s: float) -> None:
        """Count the operators of a function of PyTorch.

        Raises:
            NotValid: it is no valid baseline.
        """
        if not (self.on_gpu and side.examined):
            return
        if side.ran is None:
            side.ran = operators_in(side.do(CountOperators(slot=side.slot), allowed_s))
        why = why_elsewhere(side.ran)
        if why is not None:
            raise NotValid(side.name, why)
        if side.ran.waits:
            # Trying would cost a process and all that it has compiled.
            side.graphs = Graphs.REFUSED
            side.why_not_captured = f"{side.name}: it waits for the device in a call"

    def estimate_call(self, side: Side) -> None:
        """Estimate the seconds of a call (`warm_up_s`, `launch_s`) by ever longer batches.

        A host that has been waiting is slow for a moment. The estimate is repeated with a longer
        head start while the device may have waited for the host.
        """
        # Long calls need no second estimate, and hosts that wait for the device in each call do
        # not get ahead of it.
        waits = side.ran is not None and bool(side.ran.waits)
        tries = 1 if waits or side.second_s > SLOW_S else MOST_ESTIMATES
        # As many calls as the previous side needed, if that is quick.
        known = min(self.last_calls, int(SLOW_S / max(side.second_s, 1e-6)))
        calls = 1 if side.second_s > self.effort.batch_s else max(SPARE, known)
        head_start_s = self.head_start_s
        least_s = side.launch_s = math.inf
        while True:
            batch = self.run(side, [i % SPARE for i in range(calls)])
            longer_s = self.head_start_s - head_start_s
            # A claim of zero seconds would make the batches of all sides long.
            seen_s = (batch.wall_s - longer_s - side.second_s) / MOST_UNDERSTATED
            least_s = min(least_s, max(batch.device_s, seen_s))
            side.launch_s = min(side.launch_s, batch.host_s / calls)
            if least_s < self.effort.batch_s / 4 and calls < MOST_BUFFERS:
                calls, least_s = 4 * calls, math.inf
            elif tries > 1 and self.on_gpu and was_starved(batch):
                tries -= 1
            else:
                break
            # Calls too short for this head start get the most buffers in any case.
            self.head_start_s = max(
                self.head_start_s, min(_needed(batch, calls), MOST_HEAD_START_S / 4)
            )
        self.head_start_s = head_start_s
        self.last_calls = calls
        side.warm_up_s = least_s / calls

    def re_estimate_call(self, side: Side) -> None:
        """Lower the estimate of a call's seconds to the fastest of a few single calls.

        For baselines only: it believes what the child claims.
        """
        head_start_s, began = self.head_start_s, self.now()
        least, most = RE_ESTIMATES
        for i in range(most):
            if i >= least and self.now() - began > RE_ESTIMATE_S:
                break
            batch = self.run(side, [i % SPARE])
            side.warm_up_s = min(side.warm_up_s, batch.device_s)
            if self.on_gpu and was_starved(batch):
                self.head_start_s = max(
                    self.head_start_s, min(_needed(batch, 1), MOST_HEAD_START_S / 4)
                )
        self.head_start_s = head_start_s

    def allocate_buffers(self, side: Side, count: int) -> None:
        """Allocate buffers for the calls of batches in place of those that the side has."""
        message = AllocateBuffers(count=count_all_buffers(count), slot=side.slot)
        side.do(message, self.effort.deadline_s)
        side.advance(ChildEvent.ALLOCATED, buffers=count)

    def capture(self, side: Side, *, elements: tuple[int, ...] = (), sources: int = 0) -> bool:
        """Capture the calls of a side in graphs, unless that was tried before.

        Without elements no calls are checked (see `spot_check_of`).

        Returns:
            Whether they are captured.
        """
        if side.graphs is Graphs.UNTRIED:
            try:
                self._try_to_capture(side, elements=elements, sources=sources)
            except SideError as error:
                if error.seen.ended in ("died", "timeout", "lost"):
                    raise
                self._recover(side, str(error))
        return side.graphs is Graphs.CAPTURED

    def _try_to_capture(self, side: Side, *, elements: tuple[int, ...], sources: int) -> None:
        self.fill(side, range(SPARE), self.inputs.draw(self.rng, SPARE))
        self.run(side, range(SPARE))
        side.groups = groups_of(side.buffers, self.rng)
        if elements:
            checked = [side.groups[i] for i in checked_groups(side.buffers)]
            self.begin_spot_check(side, checked, elements=elements, sources=sources)
        order = tuple(shuffled(len(side.groups), self.rng))
        capture = CaptureGraphs(groups=side.groups, order=order, slot=side.slot)
        side.do(capture, self.effort.deadline_s)
        side.graphs = Graphs.CAPTURED

    def _recover(self, side: Side, why: str) -> None:
        """Start the child again: a failed capture may have broken its CUDA context."""
        side.graphs, side.why_not_captured = Graphs.REFUSED, why
        # A restart forgets how many: of all its sides, if they share the child.
        buffers = side.buffers
        side.child.restart()
        side.advance(ChildEvent.RESTARTED)
        self.warm_up(side)
        self.allocate_buffers(side, buffers)

    def extend_head_start(self, side: Side, batch: Batch) -> bool:
        """Make all batches wait longer if the device may have waited for the host in this one.

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
        self, side: Side, order: Sequence[int], batch: Batch, *, graphs: bool, first: bool
    ) -> None:
        """Find the head start that a side needs, from this batch and similar ones.

        The `first` batch on new buffers does not count: it allocates memory, or brings graphs to
        the device, and takes longer than any other.
        """
        before, side.waits = self.head_start_s, side.ran is not None and side.ran.waits > 0
        side.tuned.add(graphs)
        if side.waits:
            return
        if first:
            batch = self.run(side, order, graphs=graphs, calls=batch.calls)
        while self.extend_head_start(side, batch):
            batch = self.run(side, order, graphs=graphs, calls=batch.calls)
        if side.waits:
            self.head_start_s = before
        else:
            # Other batches have more calls, and hosts that were busy for a moment no longer are.
            needed = min(_needed(batch, side.buffers), MOST_HEAD_START_S)
            self.head_start_s = max(before, needed)

    def shrink_head_start(self, block: Sequence[tuple[Side, Batch]]) -> None:
        """Make batches wait no longer than the hosts of this block needed."""
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
    ) -> SpotCheck:
        """Check some of these calls from now on; for the arguments see `spot_check_of`."""
        side.spot_check = spot_check_of(
            groups, elements=elements, sources=sources, slot=side.slot, rng=self.rng
        )
        side.do(side.spot_check, self.effort.deadline_s)
        return side.spot_check

    def end_spot_check(self, side: Side) -> None:
        """Check no more calls."""
        side.spot_check = None
        side.do(SpotCheck(slot=side.slot), self.effort.deadline_s)

    def show(self, side: Side) -> Observation:
        """Fetch the result of the last batch's final call."""
        sizes = {
            a.name: math.prod(a.shape) * self.inputs.pools[a.name].elements.element_size()
            for a in self.inputs.arguments
            if isinstance(a, Supply) and a.shown
        }
        return side.child.request(
            ShowResult(slot=side.slot), sizes=sizes, deadline_s=self.effort.deadline_s
        )

    def show_spot_check(self, side: Side) -> Observation:
        """Fetch the kept elements of the checked calls."""
        return side.do(ShowResult(spot_checks=True, slot=side.slot), self.effort.deadline_s)

    def fill(self, side: Side, buffers: Sequence[int], contents: Contents) -> None:
        """Fill buffers of a side with these contents."""
        message = self.inputs.refill(buffers, contents)
        side.do(replace(message, slot=side.slot), self.effort.deadline_s)

    def run(
        self,
        side: Side,
        order: Sequence[int],
        *,
        graphs: bool = False,
        calls: int | None = None,
        deadline_s: float | None = None,
    ) -> Batch:
        """Run a batch over buffers, or with `graphs` over captured groups of `calls` calls."""
        head_start_s = self.head_start_s if self.on_gpu else 0.0
        message = RunBatch(
            buffers=tuple(order),
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
            calls=calls or len(order),
            wall_s=wall,
            device_s=seen.timings.get("device_s", wall),
            host_s=seen.timings.get("host_s", wall),
            head_start_s=head_start_s,
        )
        for part, seconds in zip(PARTS, (wall, batch.device_s, head_start_s), strict=True):
            self.spent[part] += seconds
        return batch


def _needed(batch: Batch, calls: int) -> float:
    """Return the head start in which a host enqueues `calls` calls, judging by this batch."""
    return SPARE_TIME * batch.host_s / batch.calls * calls
