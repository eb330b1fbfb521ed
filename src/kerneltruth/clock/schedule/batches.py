"""What the children of a contest are asked for: rows, contents, graphs, laps, and what they show.

One side at a time; who is asked when is settled in `contest`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kerneltruth.cases.philox import Stream, stream
from kerneltruth.clock.integrity.disturbance import was_starved
from kerneltruth.clock.integrity.spot_checks import sample_of
from kerneltruth.clock.integrity.valid_baselines import NotValid, why_elsewhere
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import Contents, Inputs
from kerneltruth.clock.protocol.operators import operators_in
from kerneltruth.clock.protocol.rows import (
    MOST_ROWS,
    SPARE,
    count_all,
    groups_of,
    sampled_groups,
    shuffled,
)
from kerneltruth.clock.protocol.sides import Contestant, ContestError, LapSeen
from kerneltruth.runner.protocol import Observation
from kerneltruth.runner.timing.messages import (
    Capture,
    Lap,
    Operators,
    Rows,
    Sample,
    Show,
    Stock,
    Supply,
)

# How many times less than the judge saw a call may claim to take, where that sizes laps.
DOUBT = 8
# How often calls are looked at, at most, to see them without their host.
LOOKS = 3
FIRST_S = 300.0
# For so long a lap's first call is kept waiting on the device, at least: a host that has just woken
# takes a good part of that to enqueue it, differently from process to process.
AHEAD_S = 5e-4
# And at most, where a host takes longer to enqueue calls than the device to run them.
MOST_AHEAD_S = 2e-2
# A host that takes more than so many times that for a lap gets its longest head start at once.
HOPELESS = 2
# Hosts are quicker at one time than at another.
SPARE_TIME = 1.5
# Calls that take longer are made as rarely as can be.
SLOW_S = 0.1
# How many calls are looked at once more, at least and at most, and for how long beyond the fewest.
AGAIN = (2, 6)
AGAIN_S = 0.5
# What the seconds of laps are told by.
PARTS = ("calls", "device", "ahead")


@dataclass(slots=True, kw_only=True)
class Laps:
    """Asks children of a contest for laps.

    Attributes:
        now: the judge's clock, in seconds.
        ahead_s: for which a lap's first call waits on the device, the same for every side.
        hides: whether contents are hidden meanwhile; a graph's calls cannot begin before it ends.
        gauged: how many calls it took to gauge the last side.
        spent: seconds that went into laps: with all around them (`calls`), and within these by
            the device's events (`device`) and waiting for the host (`ahead`).
    """

    inputs: Inputs
    effort: Effort
    rng: Stream
    on_gpu: bool
    now: Callable[[], float] = time.perf_counter
    ahead_s: float = AHEAD_S
    hides: bool = False
    gauged: int = SPARE
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))

    def warm_up(self, side: Contestant) -> None:
        """Stock a child, and have it compile: the first two calls.

        A child that is stocked has compiled before.
        """
        side.warm_s = None
        allowed_s = max(FIRST_S, self.effort.deadline_s)
        if not side.stocked:
            stock = Stock(
                arguments=self.inputs.arguments,
                slot=side.slot,
                flush_bytes=self.effort.flush_bytes if self.on_gpu else 0,
                compiled=side.compiled,
            )
            side.do(stock, allowed_s)
        side.do(Rows(count=SPARE, slot=side.slot), allowed_s)
        contents = self.inputs.draw(stream(0, "warm-up", side.name), SPARE)
        self.refill(side, range(SPARE), contents)
        first_s = self.lap(side, [0], deadline_s=allowed_s).wall_s
        # In another process, or a second time, it finds compiled what the first had to compile.
        side.first_s = side.first_s or first_s
        side.second_s = self.lap(side, [1], deadline_s=allowed_s).wall_s
        self._examine(side, allowed_s)
        side.stocked = side.warmed = True

    def _examine(self, side: Contestant, allowed_s: float) -> None:
        """Have a baseline that is to be examined tell what it runs, and where."""
        if not (self.on_gpu and side.examined):
            return
        if side.ran is None:
            side.ran = operators_in(side.do(Operators(slot=side.slot), allowed_s))
        why = why_elsewhere(side.ran)
        if why is not None:
            raise NotValid(side.name, why)
        if side.ran.waits:
            # To try would cost a process, and all that it has compiled.
            side.captured, side.why_not = False, f"{side.name}: it waits for the device in a call"

    def gauge(self, side: Contestant) -> None:
        """About how long a call takes, by ever longer laps while nobody else is at work.

        A host that has been waiting is slow for a moment: while the device may have waited for it,
        the same is looked at again.
        """
        # A call that takes that long shows how long it takes, and more of them cost too much; so do
        # more looks at a host that waits for the device in each call.
        waits = side.ran is not None and bool(side.ran.waits)
        looks = 1 if waits or side.second_s > SLOW_S else LOOKS
        # As many as the side before needed, if that takes no long.
        known = min(self.gauged, int(SLOW_S / max(side.second_s, 1e-6)))
        calls = 1 if side.second_s > self.effort.lap_s else max(SPARE, known)
        ahead_s = self.ahead_s
        least_s = side.launch_s = math.inf
        while True:
            lap = self.lap(side, [i % SPARE for i in range(calls)])
            waited = self.ahead_s - ahead_s
            # Who claims to take no time must not make everyone's laps long.
            seen_s = max(lap.device_s, (lap.wall_s - waited - side.second_s) / DOUBT)
            least_s = min(least_s, seen_s)
            side.launch_s = min(side.launch_s, lap.host_s / calls)
            if least_s < self.effort.lap_s / 4 and calls < MOST_ROWS:
                calls, least_s = 4 * calls, math.inf
            elif looks > 1 and self.on_gpu and was_starved(lap):
                looks -= 1
            else:
                break
            # Of calls so short that this does not suffice there are as many as can be in any case.
            self.ahead_s = max(self.ahead_s, min(_needed(lap, calls), MOST_AHEAD_S / 4))
        self.ahead_s = ahead_s
        self.gauged = calls
        side.warm_up_s = least_s / calls

    def gauge_again(self, side: Contestant) -> None:
        """How long a call takes at least: the quickest of a few calls, one by one, says so.

        Of baselines only: what the child claims of its calls is taken for true.
        """
        ahead_s, began = self.ahead_s, self.now()
        least, most = AGAIN
        for i in range(most):
            if i >= least and self.now() - began > AGAIN_S:
                break
            lap = self.lap(side, [i % SPARE])
            side.warm_up_s = min(side.warm_up_s, lap.device_s)
            if self.on_gpu and was_starved(lap):
                self.ahead_s = max(self.ahead_s, min(_needed(lap, 1), MOST_AHEAD_S / 4))
        self.ahead_s = ahead_s

    def make_rows(self, side: Contestant, rows: int) -> None:
        """Make rows for the calls of laps, in place of those there are."""
        side.do(Rows(count=count_all(rows), slot=side.slot), self.effort.deadline_s)
        side.forget_rows()
        side.rows = rows

    def capture(
        self, side: Contestant, *, elements: tuple[int, ...] = (), sources: int = 0
    ) -> bool:
        """Capture the calls of a side in graphs, unless that was tried before.

        Args:
            side: whose calls.
            elements: see `sample_of`; none if no calls are sampled.
            sources: see `sample_of`.
        """
        if side.captured is None:
            try:
                self.refill(side, range(SPARE), self.inputs.draw(self.rng, SPARE))
                self.lap(side, range(SPARE))
                side.groups = groups_of(side.rows, self.rng)
                if elements:
                    sampled = [side.groups[i] for i in sampled_groups(side.rows)]
                    self.begin_sampling(side, sampled, elements=elements, sources=sources)
                order = tuple(shuffled(len(side.groups), self.rng))
                capture = Capture(groups=side.groups, order=order, slot=side.slot)
                side.do(capture, self.effort.deadline_s)
                side.captured = True
            except ContestError as error:
                if error.seen.ended in ("died", "timeout", "lost"):
                    raise
                # What was begun may have broken the child's CUDA context.
                side.captured, side.why_not = False, str(error)
                # Before: a child that is shared forgets those of all its sides.
                rows = side.rows
                side.child.restart()
                side.stocked = False
                self.warm_up(side)
                self.make_rows(side, rows)
        return side.captured

    def get_ahead(self, side: Contestant, lap: LapSeen) -> bool:
        """Have all laps wait longer if the device may have waited for the host in this one.

        Gives whether they do; no more than twice as long, since a host that was stopped for once is
        as quick afterwards, and the longer laps wait, the less exactly the judge's clock sees their
        calls. A host that takes longer however long the device is kept waiting is no more looked
        at: its calls wait for the device themselves, or it is that slow.
        """
        if side.waits or not was_starved(lap):
            return False
        side.waits = lap.ahead_s >= MOST_AHEAD_S
        step = MOST_AHEAD_S if lap.host_s > HOPELESS * MOST_AHEAD_S else 2 * lap.ahead_s
        longer = min(_needed(lap, side.rows), step, MOST_AHEAD_S)
        self.ahead_s = max(self.ahead_s, longer)
        return not side.waits

    def settle(
        self, side: Contestant, rows: Sequence[int], lap: LapSeen, *, graphs: bool, first: bool
    ) -> None:
        """Find out how far ahead of the device a host must be, by this lap and others like it.

        If it is the `first` of its kind on these rows, by others only: it has allocated memory, or
        brought graphs to the device, and no other takes as long.
        """
        before, side.waits = self.ahead_s, side.ran is not None and side.ran.waits > 0
        side.settled.add(graphs)
        if side.waits:
            return
        if first:
            lap = self.lap(side, rows, graphs=graphs, calls=lap.calls)
        while self.get_ahead(side, lap):
            lap = self.lap(side, rows, graphs=graphs, calls=lap.calls)
        if side.waits:
            self.ahead_s = before
        else:
            # Other laps have more calls, and hosts that were busy for a moment no longer are.
            needed = min(_needed(lap, side.rows), MOST_AHEAD_S)
            self.ahead_s = max(before, needed)

    def come_down(self, block: Sequence[tuple[Contestant, LapSeen]]) -> None:
        """Have laps wait no longer than the hosts of this block needed."""
        needed = (_needed(lap, side.rows) for side, lap in block if not side.waits)
        self.ahead_s = min(self.ahead_s, max(needed, default=AHEAD_S))
        self.ahead_s = max(self.ahead_s, AHEAD_S)

    def begin_sampling(
        self,
        side: Contestant,
        groups: Sequence[Sequence[int]],
        *,
        elements: tuple[int, ...],
        sources: int,
    ) -> None:
        """From now on some of these calls are sampled; see `sample_of`."""
        side.sample = sample_of(
            groups, elements=elements, sources=sources, slot=side.slot, rng=self.rng
        )
        side.do(side.sample, self.effort.deadline_s)

    def end_sampling(self, side: Contestant) -> None:
        """No call is sampled any more."""
        side.sample = None
        side.do(Sample(slot=side.slot), self.effort.deadline_s)

    def show(self, side: Contestant) -> Observation:
        """What the last call of the last lap gave."""
        sizes = {
            a.name: math.prod(a.shape) * self.inputs.pools[a.name].elements.element_size()
            for a in self.inputs.arguments
            if isinstance(a, Supply) and a.shown
        }
        return side.child.errand(
            Show(slot=side.slot), sizes=sizes, deadline_s=self.effort.deadline_s
        )

    def show_sampled(self, side: Contestant) -> Observation:
        """What was kept of the sampled calls."""
        return side.do(Show(sampled=True, slot=side.slot), self.effort.deadline_s)

    def refill(self, side: Contestant, rows: Sequence[int], contents: Contents) -> None:
        """Give rows of a side these contents."""
        refill = self.inputs.refill(rows, contents)
        side.do(replace(refill, slot=side.slot), self.effort.deadline_s)

    def lap(
        self,
        side: Contestant,
        rows: Sequence[int],
        *,
        graphs: bool = False,
        calls: int | None = None,
        deadline_s: float | None = None,
    ) -> LapSeen:
        """A lap over rows, or with `graphs` over groups of them, which are so many calls."""
        ahead_s = self.ahead_s if self.on_gpu else 0.0
        message = Lap(
            rows=tuple(rows), graphs=graphs, ahead_s=ahead_s, hidden=self.hides, slot=side.slot
        )
        began = self.now()
        seen = side.do(message, deadline_s or self.effort.deadline_s)
        wall = self.now() - began
        side.peak_bytes = max(side.peak_bytes, int(seen.timings.get("peak_bytes", 0)))
        lap = LapSeen(
            calls=calls or len(rows),
            wall_s=wall,
            device_s=seen.timings.get("device_s", wall),
            host_s=seen.timings.get("host_s", wall),
            ahead_s=ahead_s,
        )
        for part, seconds in zip(PARTS, (wall, lap.device_s, ahead_s), strict=True):
            self.spent[part] += seconds
        return lap


def _needed(lap: LapSeen, calls: int) -> float:
    """How long the first of so many calls must wait for all of them to be there."""
    return SPARE_TIME * lap.host_s / lap.calls * calls
