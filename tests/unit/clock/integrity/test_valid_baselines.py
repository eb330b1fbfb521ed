"""Whether a baseline is one: where it runs, and whether it takes no longer than its work can."""

import math
from itertools import count

import pytest
from timed_children import Sides

from kerneltruth.clock.integrity.valid_baselines import (
    NOTHING_RUNS,
    NotValid,
    host_bound,
    most_s,
    why_elsewhere,
    why_too_long,
)
from kerneltruth.clock.protocol.buffers import SPARE
from kerneltruth.clock.protocol.operators import Operators, operators_in
from kerneltruth.clock.protocol.sides import ChildEvent, Side
from kerneltruth.clock.schedule.batch_runner import RE_ESTIMATES
from kerneltruth.clock.schedule.preparation import TRIES
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.timing.messages import (
    AllocateBuffers,
    CaptureGraphs,
    CountOperators,
    RunBatch,
)

PLAIN = Operators(launches=3, on_host=0, elsewhere=0)
EIG = Operators(launches=3, on_host=2, elsewhere=0, factors=("linalg_eig",))
DEVICE = {"floor_s": 1e-5, "launch_s": 5e-6}


def test_what_a_child_counted_is_read():
    seen = Observation(
        ended="returned",
        message="linalg_eig",
        timings={"launches": 3.0, "on_host": 2.0, "elsewhere": 0.0},
    )
    assert operators_in(seen) == EIG


def test_results_on_the_host_and_no_launches_are_no_baseline():
    assert why_elsewhere(PLAIN) is None
    assert "do not lie" in why_elsewhere(Operators(launches=3, on_host=0, elsewhere=1))
    assert "launched nothing" in why_elsewhere(Operators(launches=0, on_host=3, elsewhere=0))


def test_a_hundred_times_the_floor_or_the_launches_is_the_most_that_a_baseline_takes():
    assert most_s(PLAIN, **DEVICE) == pytest.approx(100 * 3 * 5e-6)
    assert most_s(PLAIN, floor_s=1e-3, launch_s=5e-6) == pytest.approx(0.1)
    assert why_too_long(PLAIN, 1.4e-3, **DEVICE) is None
    said = why_too_long(PLAIN, 1.6e-3, **DEVICE)
    assert said.startswith("a call takes 1.6 ms: over 100 times the larger of its floor (10 us)")


def test_a_factorization_that_waits_for_its_host_is_no_error_and_says_so():
    assert most_s(EIG, **DEVICE) == math.inf
    assert why_too_long(EIG, 1.0, **DEVICE) is None
    assert "linalg_eig" in host_bound(EIG, 1.0, **DEVICE)
    assert host_bound(EIG, 1e-3, **DEVICE) is None
    assert host_bound(PLAIN, 1.0, **DEVICE) is None


@pytest.fixture
def sides(clock):
    return Sides(clock)


def of_eager(sides, **script):
    """A candidate, and a baseline that is examined."""
    sides.add("candidate")
    child = sides.add("eager", **script)
    sides.made[-1].examined = True
    return child


def test_a_baseline_that_runs_elsewhere_has_no_batch_that_counts(sides):
    child = of_eager(sides, ran={"launches": 0.0})
    with pytest.raises(NotValid) as found:
        sides.benchmark().prepare()
    assert str(found.value) == f"no valid baseline: {NOTHING_RUNS}"
    assert len(child.of(RunBatch)) == 2


def test_a_baseline_that_runs_elsewhere_is_none_when_it_gets_ready_again_either(sides):
    """As where another baseline that got ready beside it was none."""
    of_eager(sides, ran={"launches": 0.0})
    for _ in range(2):
        with pytest.raises(NotValid, match="it launched nothing"):
            sides.benchmark().prepare()


def test_a_baseline_that_takes_too_long_costs_a_few_calls(sides):
    child = of_eager(sides, call_s=30.0, ran={"launches": 1.0})

    def over_a_second(side):
        return "too long" if side.ran and side.warm_up_s > 1.0 else None

    with pytest.raises(NotValid) as found:
        sides.benchmark(too_long=over_a_second).prepare()
    assert found.value.name == "eager"
    # Two to get ready, one that shows how slow it is, and two more before it is refused.
    assert sum(len(batch.buffers) for batch in child.of(RunBatch)) == 5


def too_long(side):
    """As a GPU says of one launch for two microseconds of work."""
    return side.ran and why_too_long(side.ran, side.warm_up_s, floor_s=2e-6, launch_s=15e-6)


def prepared(sides, **more):
    benchmark = sides.benchmark(too_long=too_long)
    benchmark.prepare(**more)
    return benchmark


def slow_at(child, *batches):
    """Calls in these batches, counted from the first, take 5 ms more."""
    counted = count(1)
    child.noise = lambda: 251.0 if next(counted) in batches else 1.0


@pytest.mark.parametrize("batches", [(3,), (3, 4, 5), (3, 4, 5, 6, 7)])
def test_slow_calls_among_quick_ones_refuse_no_baseline(sides, batches):
    child = of_eager(sides, ran={"launches": 1.0})
    slow_at(child, *batches)
    benchmark = prepared(sides)
    assert [side.name for side in benchmark.sides] == ["candidate", "eager"]
    # Nor do they tell how long batches are.
    assert sides.made[1].warm_up_s == pytest.approx(child.call_s)


def test_a_baseline_each_call_of_which_is_slow_is_refused(sides):
    child = of_eager(sides, call_s=3e-3, ran={"launches": 1.0})
    with pytest.raises(NotValid, match="no valid baseline: a call takes 3 ms: over 100 times"):
        prepared(sides)
    assert not any(message.count > SPARE for message in child.of(AllocateBuffers))


def test_a_slow_host_refuses_no_baseline(sides):
    of_eager(sides, ran={"launches": 1.0}, host_s=3e-3)
    assert len(prepared(sides).sides) == 2


def test_a_disturbed_measurement_refuses_no_baseline(sides):
    child = of_eager(sides, call_s=3e-3, ran={"launches": 1.0})
    prepared(sides, disturbance=lambda: "1 other process on the device")
    assert sides.made[1].warm_up_s == pytest.approx(3e-3)
    # Beside the two that get it ready, and the first by which it is gauged.
    assert (
        sum(len(batch.buffers) == 1 for batch in child.of(RunBatch)) <= TRIES * RE_ESTIMATES[1] + 3
    )


def test_calls_that_no_disturbance_makes_so_slow_are_refused_all_the_same(sides):
    child = of_eager(sides, call_s=1.0, ran={"launches": 1.0})
    with pytest.raises(NotValid):
        prepared(sides, disturbance=lambda: "1 other process on the device")
    assert sum(len(batch.buffers) for batch in child.of(RunBatch)) == 5


def test_operators_are_counted_for_baselines_only(sides):
    child = of_eager(sides, ran={"launches": 1.0})
    sides.benchmark().prepare()
    assert len(child.of(CountOperators)) == 1
    assert not sides.children["candidate"].of(CountOperators)


def test_slow_calls_are_made_as_rarely_as_can_be(sides):
    slow = sides.add("candidate", call_s=0.5)
    sides.add("eager", call_s=0.5)
    benchmark = sides.benchmark()
    benchmark.prepare()
    benchmark.run(lambda c: True)
    benchmark.measure_warm()
    calls = sum(len(batch.buffers) for batch in slow.of(RunBatch))
    # A block has two batches of the candidate, of a call or two; a dozen more would be usual.
    assert calls <= 4 * benchmark.effort.blocks[0] + 10
    assert sum(len(batch.buffers) == 1 for batch in slow.of(RunBatch)) >= benchmark.effort.blocks[0]
    assert all(len(block["candidate"]) == 2 for block in benchmark.overheads)


def test_a_baseline_that_waits_for_the_device_is_not_tried_in_graphs(sides):
    child = of_eager(sides, ran={"launches": 1.0, "waits": 1.0})
    benchmark = sides.benchmark()
    benchmark.prepare()
    assert not benchmark.graphs
    assert benchmark.why_not_captured == "eager: it waits for the device in a call"
    assert not child.of(CaptureGraphs)
    assert child.restarts == 0


def test_sides_whose_shared_child_began_anew_get_their_rows_again(sides):
    """Eager PyTorch could not be captured; what was compiled in its process went with it."""
    sides.add("candidate")
    child = sides.add("eager", ends={CaptureGraphs: "raised"})
    shared = [sides.made[-1], Side(name="compile", child=child, slot=1)]
    sides.made.append(shared[1])
    restart = child.restart

    def start_again():
        restart()
        for side in shared:
            side.advance(ChildEvent.RESTARTED)

    child.restart = start_again
    benchmark = sides.benchmark()
    benchmark.prepare()
    assert child.restarts == 1
    assert [side.buffers for side in benchmark.sides] == [benchmark.buffers] * 3
    benchmark.run(lambda c: True)
    assert benchmark.blocks
