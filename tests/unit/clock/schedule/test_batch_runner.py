"""Batches of a child whose times are a script: how far its host gets ahead of the device."""

from dataclasses import replace

import pytest
from timed_children import CASE, RELU, Child

from kerneltruth.cases.philox import stream
from kerneltruth.clock.integrity.disturbance import was_starved
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.protocol.operators import Operators
from kerneltruth.clock.protocol.sides import Batch, ChildEvent, Readiness, Side
from kerneltruth.clock.schedule.batch_runner import (
    HEAD_START_S,
    MOST_ESTIMATES,
    MOST_HEAD_START_S,
    BatchRunner,
)
from kerneltruth.errors import InternalError
from kerneltruth.runner.timing.messages import AllocateBuffers, PrepareInputs, RunBatch

CALLS = 20
EFFORT = Effort(batch_s=0.0016, graph_batch_s=0.0048, memory_bytes=2**20)


@pytest.fixture
def make_runner(clock):
    """Batches, and a side with this script whose buffers have contents."""

    def make(*, on_gpu=True, **script):
        batches = BatchRunner(
            inputs=make_bench_inputs(RELU, CASE),
            effort=EFFORT,
            rng=stream(1, "laps"),
            on_gpu=on_gpu,
            now=clock.read,
        )
        side = Side(name="candidate", child=Child(clock, **script))
        batches.warm_up(side)
        batches.allocate_buffers(side, CALLS)
        batches.fill(side, range(CALLS), batches.inputs.draw(batches.rng, CALLS))
        return batches, side

    return make


def settled(batches, side):
    batch = batches.run(side, range(CALLS))
    batches.tune_head_start(side, range(CALLS), batch, graphs=False, first=True)
    return batches.run(side, range(CALLS))


@pytest.mark.parametrize(
    ("host_s", "device_s", "starved"),
    [
        (4e-4, 1e-5, False),  # All are there before the first begins.
        (8e-4, 3.1e-4, True),  # The last one began as soon as it was there.
        (2e-3, 1.5e-3, True),
        (8e-4, 2e-3, True),  # The first one may have begun late.
        (5.2e-4, 5e-2, False),  # But by nothing to speak of.
    ],
)
def test_a_device_may_be_starved_if_it_could_begin_before_the_host_was_done(
    host_s, device_s, starved
):
    batch = Batch(calls=20, wall_s=1.0, device_s=device_s, host_s=host_s, head_start_s=HEAD_START_S)
    assert was_starved(batch) is starved


@pytest.mark.parametrize("host_s", [0.0, 1e-5, 1.6e-5])
def test_a_host_that_is_quick_enough_gets_no_more_time(make_runner, host_s):
    batches, side = make_runner(call_s=5e-5, host_s=host_s)
    count = len(side.child.of(RunBatch))
    batch = settled(batches, side)
    assert batches.head_start_s == batch.head_start_s == HEAD_START_S
    # Neither was another batch needed to find that out.
    assert len(side.child.of(RunBatch)) == count + 3


def test_one_more_batch_of_a_known_kind_shows_how_quick_a_host_is(make_runner):
    batches, side = make_runner(call_s=5e-5, host_s=1e-5)
    batch = batches.run(side, range(CALLS))
    count = len(side.child.of(RunBatch))
    batches.tune_head_start(side, range(CALLS), batch, graphs=False, first=False)
    assert len(side.child.of(RunBatch)) == count
    # If it may have kept the device waiting others are made.
    batches.tune_head_start(
        side, range(CALLS), replace(batch, host_s=1e-2), graphs=False, first=False
    )
    assert len(side.child.of(RunBatch)) == count + 1


@pytest.mark.parametrize(("host_s", "seen_s"), [(4e-5, 5e-5), (8e-5, 5.5e-5), (2.5e-4, 2e-4)])
def test_a_slow_host_gets_so_far_ahead_that_the_device_is_timed(make_runner, host_s, seen_s):
    batches, side = make_runner(call_s=5e-5, host_s=host_s)
    assert batches.run(side, range(CALLS)).per_call_s >= seen_s
    batch = settled(batches, side)
    assert batch.per_call_s == pytest.approx(5e-5)
    assert not was_starved(batch)
    assert CALLS * host_s <= batches.head_start_s <= 2 * CALLS * host_s


def test_a_momentarily_busy_host_does_not_delay_later_batches(make_runner):
    batches, side = make_runner(call_s=5e-5, host_s=1e-4)
    do, seen = side.child.request, []

    def request(message, **kwargs):
        seen.append(message)
        # The first batches only: allocations, say.
        side.child.host_s = 1e-4 if len(seen) < 4 else 1e-5
        return do(message, **kwargs)

    side.child.request = request
    batch = batches.run(side, range(CALLS))
    batches.tune_head_start(side, range(CALLS), batch, graphs=False, first=True)
    assert max(batch.head_start_s for batch in side.child.of(RunBatch)) > HEAD_START_S
    assert batches.head_start_s == HEAD_START_S


@pytest.mark.parametrize(("host_s", "at_least_s"), [(1e-5, HEAD_START_S), (1e-4, CALLS * 1e-4)])
def test_batches_wait_no_longer_than_the_slowest_host_of_a_block_needs(
    make_runner, host_s, at_least_s
):
    batches, side = make_runner(call_s=5e-5, host_s=host_s)
    quick = Side(name="eager", child=side.child, readiness=Readiness.READY, buffers=CALLS)
    batches.head_start_s = 1e-2
    batch = batches.run(side, range(CALLS))
    batches.shrink_head_start([(side, batch), (quick, replace(batch, host_s=1e-6))])
    assert at_least_s <= batches.head_start_s <= 2 * at_least_s
    # Not longer either: that takes a batch in which the device may have waited.
    batches.head_start_s = HEAD_START_S
    batches.shrink_head_start([(side, batch)])
    assert batches.head_start_s == HEAD_START_S


def test_hosts_of_calls_that_wait_for_the_device_delay_no_side(make_runner):
    batches, side = make_runner(call_s=5e-5, host_s=1e-4)
    side.waits, batches.head_start_s = True, 1e-2
    batches.shrink_head_start([(side, batches.run(side, range(CALLS)))])
    assert batches.head_start_s == HEAD_START_S


def test_there_is_an_end_to_it(make_runner):
    batches, side = make_runner(call_s=5e-5, host_s=5e-3)
    batch = settled(batches, side)
    assert max(batch.head_start_s for batch in side.child.of(RunBatch)) == MOST_HEAD_START_S
    # Nobody waits in vain for a host that is slower still.
    assert batches.head_start_s == HEAD_START_S
    assert was_starved(batch)
    assert not batches.extend_head_start(side, batch)


def test_a_host_that_is_far_too_slow_is_tried_no_step_by_step(make_runner):
    batches, side = make_runner(call_s=5e-3, host_s=5e-3)
    before = len(side.child.of(RunBatch))
    settled(batches, side)
    assert side.waits
    # One that does not count, one that is slow, one as late as can be, and one that is asked for.
    assert len(side.child.of(RunBatch)) == before + 4


def test_a_baseline_that_is_known_to_wait_is_not_settled(make_runner):
    batches, side = make_runner(call_s=5e-5, host_s=5e-3)
    side.ran = Operators(launches=1, on_host=0, elsewhere=0, waits=1)
    before = len(side.child.of(RunBatch))
    settled(batches, side)
    assert side.waits
    assert batches.head_start_s == HEAD_START_S
    assert len(side.child.of(RunBatch)) == before + 2


def test_a_host_that_was_stopped_once_delays_later_batches_little(make_runner):
    batches, side = make_runner(call_s=5e-5)
    side.child.host_s = 5e-4
    stopped = batches.run(side, range(CALLS))
    side.child.host_s = 0.0
    assert batches.extend_head_start(side, stopped)
    assert batches.head_start_s == 2 * HEAD_START_S
    assert not batches.extend_head_start(side, batches.run(side, range(CALLS)))


@pytest.mark.parametrize("host_s", [0.0, 1e-4])
def test_calls_that_wait_for_the_device_are_left_as_they_are(make_runner, host_s):
    batches, side = make_runner(call_s=5e-5, host_s=host_s, waits=True)
    batch = settled(batches, side)
    assert side.waits
    assert batches.head_start_s == HEAD_START_S
    assert batch.per_call_s == pytest.approx(5e-5 + host_s)
    assert not batches.extend_head_start(side, batch)


def test_a_side_that_was_slow_in_an_earlier_benchmark_is_tuned_again(make_runner):
    batches, side = make_runner(call_s=5e-5)
    side.waits = True
    settled(batches, side)
    assert not side.waits


def test_a_slow_host_does_not_make_calls_look_long(make_runner):
    """Otherwise they would be thought too long for graphs."""
    batches, side = make_runner(call_s=5e-5, host_s=2e-4)
    batches.estimate_call(side)
    assert side.warm_up_s == pytest.approx(5e-5)
    assert side.launch_s == pytest.approx(2e-4)
    assert batches.head_start_s == HEAD_START_S


def takes_in_turn(child, *host_s):
    """Make a child's host take these seconds for a call of its next batches."""
    do, left = child.request, [*host_s]

    def request(message, **kwargs):
        if isinstance(message, RunBatch):
            child.host_s = left.pop(0) if len(left) > 1 else left[0]
        return do(message, **kwargs)

    child.request = request


@pytest.mark.parametrize("laps_of_it", [1, MOST_ESTIMATES - 1])
def test_a_host_that_wakes_up_does_not_make_calls_look_long(make_runner, laps_of_it):
    batches, side = make_runner(call_s=4e-6)
    takes_in_turn(side.child, *[6e-4] * laps_of_it, 1e-5)
    batches.estimate_call(side)
    assert side.warm_up_s == pytest.approx(4e-6)
    assert side.launch_s == pytest.approx(1e-5)
    assert batches.head_start_s == HEAD_START_S


def test_with_a_slow_host_the_quickest_batch_gives_the_time_of_a_call(make_runner):
    batches, side = make_runner(call_s=4e-6)
    takes_in_turn(side.child, 1e-3, 3e-3)
    batches.estimate_call(side)
    assert side.warm_up_s <= side.launch_s == pytest.approx(1e-3)


def test_a_host_that_waits_for_the_device_is_looked_at_once(make_runner):
    batches, side = make_runner(call_s=4e-6, host_s=3e-3)
    side.ran = Operators(launches=1, on_host=0, elsewhere=0, waits=1)
    count = len(side.child.of(RunBatch))
    batches.estimate_call(side)
    # By a single call: the second one took so long that no more are needed.
    assert len(side.child.of(RunBatch)) == count + 1


def test_a_host_that_stays_slow_is_not_looked_at_for_ever(make_runner):
    batches, side = make_runner(call_s=4e-6, host_s=3e-3)
    count = len(side.child.of(RunBatch))
    batches.estimate_call(side)
    # And one of a single call, since the second one took so long.
    assert len(side.child.of(RunBatch)) == count + 1 + MOST_ESTIMATES
    assert 4e-6 < side.warm_up_s <= 3e-3


def test_on_a_cpu_nothing_is_looked_at_twice(make_runner):
    batches, side = make_runner(call_s=4e-4, host_s=4e-4, on_gpu=False)
    count = len(side.child.of(RunBatch))
    batches.estimate_call(side)
    assert len(side.child.of(RunBatch)) == count + 1


def test_a_side_with_inputs_compiles_no_more(make_runner):
    batches, side = make_runner(call_s=5e-5)
    first_s = side.first_s
    side.advance(ChildEvent.FREED)
    side.child.requests.clear()
    side.child.around_s *= 2
    batches.warm_up(side)
    assert not side.child.of(PrepareInputs)
    assert side.child.of(AllocateBuffers)
    assert side.readiness is Readiness.WARMED_UP
    assert side.first_s == first_s


def test_on_a_cpu_nothing_is_kept_waiting(make_runner):
    batches, side = make_runner(on_gpu=False)
    assert batches.run(side, range(CALLS)).head_start_s == 0.0
    assert {batch.head_start_s for batch in side.child.of(RunBatch)} == {0.0}


def test_contents_are_hidden_until_a_batch_begins_if_calls_could_begin_before(make_runner):
    batches, side = make_runner()
    batches.hides = True
    side.child.requests.clear()
    batches.run(side, range(CALLS))
    batches.run(side, [0, 1])
    assert [m.hidden for m in side.child.requests] == [True] * 2


@pytest.mark.parametrize("wrong", [{"batch_s": 0.0}, {"batch_s": 0.005, "graph_batch_s": 0.004}])
def test_batches_of_graphs_are_not_the_shorter_ones(wrong):
    with pytest.raises(InternalError, match="batches"):
        Effort(**wrong)
