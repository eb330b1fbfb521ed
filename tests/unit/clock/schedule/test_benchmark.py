"""The course of a benchmark, with children whose clocks are scripts."""

from dataclasses import replace
from itertools import pairwise

import pytest
from timed_children import CASE, MANY, RELU, SHORTEST, SMALL, Sides, measured_laps

from kerneltruth.cases.philox import stream
from kerneltruth.clock.integrity.spot_checks import ENOUGH
from kerneltruth.clock.protocol.buffers import (
    GROUPS,
    LONGEST_BATCH_S,
    SPARE,
    WARM,
    checked_groups,
    count_all_buffers,
)
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.protocol.sides import ChildEvent, Readiness, SideError
from kerneltruth.clock.schedule.batch_runner import (
    HEAD_START_S,
    MOST_HEAD_START_S,
    MOST_UNDERSTATED,
)
from kerneltruth.clock.schedule.batches import LARGE
from kerneltruth.clock.schedule.benchmark import STARVED
from kerneltruth.runner.timing.messages import (
    AllocateBuffers,
    CaptureGraphs,
    FillBuffers,
    PrepareInputs,
    RunBatch,
    ShowResult,
    SpotCheck,
)

CALLS = replace(SMALL, graph_below_s=0.0)
EFFORTS = pytest.mark.parametrize("effort", [SMALL, CALLS])


@pytest.fixture
def sides(clock):
    return Sides(clock)


def never(benchmark):
    return False


def in_turn(sides, benchmark):
    """List the sides of the measured batches, in the order of the requests."""
    order = []
    for name, child in sides.children.items():
        child.request = record(child.request, order, name)
    benchmark.run(never)
    return order


def record(send, order, who):
    def recorded(message, **more):
        if isinstance(message, RunBatch) and len(message.buffers) > SHORTEST:
            order.append((who, len(message.buffers)))
        return send(message, **more)

    return recorded


def ready(sides, **more):
    benchmark = sides.benchmark(**more)
    benchmark.prepare()
    return benchmark


def test_a_block_runs_all_sides_and_then_all_backwards(sides):
    for name in ("candidate", "eager", "compile"):
        sides.add(name)
    order = in_turn(sides, ready(sides))
    blocks = [order[i : i + 6] for i in range(0, len(order), 6)]
    assert len(blocks) == SMALL.blocks[1]
    for block in blocks:
        there = [who for who, _ in block[:3]]
        assert sorted(there) == ["candidate", "compile", "eager"]
        assert [who for who, _ in block[3:]] == there[::-1]


def test_each_block_has_an_order_of_its_own(sides):
    for name in ("candidate", "eager", "compile"):
        sides.add(name)
    order = in_turn(sides, ready(sides))
    orders = {tuple(name for name, _ in order[i : i + 3]) for i in range(0, len(order), 6)}
    assert len(orders) > 2


@pytest.mark.parametrize("effort", [SMALL, CALLS])
def test_both_sides_of_a_pass_make_an_equal_unpredictable_number_of_calls(sides, effort):
    sides.add("candidate")
    sides.add("eager", call_s=5e-5)
    benchmark = ready(sides, effort=effort)
    benchmark.run(never)
    counts = []
    for block in benchmark.blocks:
        for own, other in zip(block["candidate"], block["eager"], strict=True):
            assert own.calls == other.calls
            counts.append(own.calls)
    assert len(set(counts)) > 2
    assert benchmark.buffers / 2 <= min(counts) <= max(counts) <= benchmark.buffers


def test_all_sides_have_as_many_buffers(sides):
    fast, slow = sides.add("candidate", call_s=3e-6), sides.add("eager", call_s=9e-5)
    benchmark = ready(sides)
    assert {c.of(AllocateBuffers)[-1].count for c in (fast, slow)} == {
        count_all_buffers(benchmark.buffers)
    }


@pytest.mark.parametrize("claims", [0.0, 1e-6])
def test_a_claim_of_zero_time_does_not_make_batches_long(sides, claims):
    child = sides.add("candidate", call_s=2e-3, claims=claims)
    sides.add("eager", call_s=2e-3)
    benchmark = ready(sides)
    assert benchmark.buffers <= 3 * MOST_UNDERSTATED * SMALL.batch_s / 2e-3
    assert max(len(batch.buffers) for batch in child.of(RunBatch)) <= 64


def test_rows_fit_into_the_memory_that_is_granted(sides):
    sides.add("candidate", call_s=1e-7)
    benchmark = ready(sides, effort=replace(SMALL, memory_bytes=128 * 40))
    assert benchmark.buffers == 3 * GROUPS
    assert count_all_buffers(benchmark.buffers) == SPARE + 3 * (GROUPS + 4) == 40


def test_two_rows_are_the_fewest_whatever_memory_is_granted(sides):
    sides.add("candidate", call_s=1e-7)
    benchmark = ready(sides, effort=replace(SMALL, memory_bytes=1))
    assert (benchmark.buffers, benchmark.graphs) == (2, False)


def test_spare_buffers_are_never_part_of_a_measured_batch(sides):
    child = sides.add("candidate")
    benchmark = ready(sides, effort=CALLS)
    child.requests.clear()
    benchmark.run(never)
    buffers = [buffer for batch in child.of(RunBatch) for buffer in batch.buffers]
    assert min(buffers) >= SPARE


def test_every_call_of_a_batch_has_its_own_buffer_and_contents(sides):
    child = sides.add("candidate")
    benchmark = ready(sides, effort=CALLS)
    child.requests.clear()
    benchmark.run(never)
    batches, refills = measured_laps(child), child.of(FillBuffers)
    assert len(batches) == len(refills) == 2 * SMALL.blocks[1]
    for batch, refill in zip(batches, refills, strict=True):
        assert len(set(batch.buffers)) == len(batch.buffers)
        assert set(refill.buffers) == set(batch.buffers)
    starts = [start for refill in refills for start in refill.windows[0]]
    assert len(set(starts)) > len(starts) / 4


@pytest.mark.parametrize("effort", [CALLS, MANY])
def test_in_a_pass_of_a_block_all_sides_have_the_same_contents(sides, effort):
    """Otherwise calls whose time depends on their contents would differ by chance."""
    children = [sides.add(name) for name in ("candidate", "eager", "compile")]
    benchmark = ready(sides, effort=effort)
    for child in children:
        child.requests.clear()
    benchmark.run(never)
    passes = []
    for child in children:
        batches = [refill.windows for refill in child.of(FillBuffers) if len(refill.buffers) > 1]
        passes.append(batches)
    assert passes[0] == passes[1] == passes[2]
    # And other ones in each pass.
    assert len({*passes[0]}) == len(passes[0]) == 2 * len(benchmark.blocks)


def test_groups_of_a_graph_hold_all_rows_once(sides):
    child = sides.add("candidate")
    benchmark = ready(sides)
    assert benchmark.graphs
    (capture,) = child.of(CaptureGraphs)
    groups = [g for i, g in enumerate(capture.groups) if i != WARM]
    assert sorted(buffer for g in groups for buffer in g) == [
        *range(SPARE, count_all_buffers(benchmark.buffers))
    ]
    assert set(capture.groups[WARM]) == {0}
    assert sorted(capture.order) == [*range(len(capture.groups))]


def test_neither_address_nor_order_tells_which_group_is_which(clock):
    found, orders = set(), set()
    for seed in range(4):
        sides = Sides(clock)
        child = sides.add("candidate")
        ready(sides, seed=seed)
        (capture,) = child.of(CaptureGraphs)
        found |= {*capture.groups[WARM + 1 :]}
        orders.add(capture.order)
    assert len(orders) == 4
    assert len(found) > 4
    assert all(max(g) - min(g) >= 2 * len(g) for g in found)


def test_long_calls_are_not_captured(sides):
    child = sides.add("candidate", call_s=2e-4)
    benchmark = ready(sides)
    assert not benchmark.graphs
    assert benchmark.why_not_captured is None
    assert child.of(CaptureGraphs) == []


def test_if_one_side_cannot_be_captured_no_side_is(sides):
    candidate = sides.add("candidate", ends={CaptureGraphs: "raised"})
    eager = sides.add("eager")
    benchmark = ready(sides)
    benchmark.run(never)
    assert not benchmark.graphs
    assert (candidate.restarts, eager.restarts) == (1, 0)
    assert "as the script says" in benchmark.why_not_captured
    assert not any(batch.graphs for child in (candidate, eager) for batch in child.of(RunBatch))
    assert len(benchmark.blocks) == SMALL.blocks[1]


def test_a_child_whose_capture_failed_gets_its_inputs_in_a_fresh_process(sides):
    child = sides.add("candidate", ends={CaptureGraphs: "raised"})
    benchmark = ready(sides)
    assert len(child.of(PrepareInputs)) == 2
    assert child.buffers == count_all_buffers(benchmark.buffers)


def test_a_baseline_whose_capture_failed_is_timed_by_calls_though_its_child_forgets(sides):
    """As in a process that benchmarks on several cases share."""
    sides.add("candidate")
    child = sides.add("eager", ends={CaptureGraphs: "raised"})
    start_again, eager = child.restart, sides.made[1]

    def restart():
        start_again()
        eager.advance(ChildEvent.FREED)

    child.restart = restart
    benchmark = ready(sides)
    assert not benchmark.graphs
    assert eager.buffers == benchmark.buffers
    assert child.buffers == count_all_buffers(benchmark.buffers)
    benchmark.run(never)
    assert all(block["eager"] for block in benchmark.blocks)


@EFFORTS
def test_contents_are_hidden_before_measured_batches_without_graphs(sides, effort):
    candidate, eager = sides.add("candidate"), sides.add("eager")
    benchmark = ready(sides, effort=effort)
    for child in (candidate, eager):
        child.requests.clear()
    benchmark.run(never)
    for child in (candidate, eager):
        assert {batch.hidden for batch in child.of(RunBatch)} == {not benchmark.graphs}


@pytest.mark.parametrize(("room", "buffers"), [(16, 12), (27, 15), (28, 16)])
def test_calls_are_captured_where_memory_holds_two_for_each_graph(sides, room, buffers):
    """Batches of graphs of a single call scatter more than those of as many calls one by one."""
    child = sides.add("candidate", call_s=9e-5)
    benchmark = ready(sides, effort=replace(SMALL, memory_bytes=128 * room))
    assert (benchmark.buffers, benchmark.graphs) == (buffers, buffers == 2 * GROUPS)
    sizes = [len(g) for capture in child.of(CaptureGraphs) for g in capture.groups]
    assert sizes == ([2] * (GROUPS + 1 + 4) if benchmark.graphs else [])
    why_not = f"memory holds inputs for {buffers} calls; graphs take 16"
    assert benchmark.why_not_captured == (None if benchmark.graphs else why_not)
    benchmark.run(never)
    assert len(benchmark.blocks) == SMALL.blocks[1]


def test_where_hosts_are_slower_than_the_device_all_sides_are_kept_waiting(sides):
    candidate = sides.add("candidate", call_s=5e-5, host_s=3e-5)
    eager = sides.add("eager", call_s=8e-5, host_s=2e-4)
    benchmark = ready(sides, effort=CALLS)
    for child in (candidate, eager):
        child.requests.clear()
    benchmark.run(never)
    (head_start_s,) = {
        batch.head_start_s for child in (candidate, eager) for batch in child.of(RunBatch)
    }
    assert head_start_s >= benchmark.buffers * 2e-4
    assert benchmark.disturbed == []
    for block in benchmark.blocks:
        assert [batch.per_call_s for batch in block["eager"]] == pytest.approx([8e-5] * 2)


def test_a_block_in_which_a_host_became_too_slow_is_repeated_with_more_time(sides):
    child = sides.add("candidate", call_s=5e-5, host_s=3e-5)
    sides.add("eager")
    benchmark = ready(sides, effort=CALLS)
    child.host_s = 2e-4
    benchmark.run(never)
    assert set(benchmark.disturbed) == {STARVED}
    # Each time batches wait twice as long.
    assert len(benchmark.disturbed) <= 6
    assert len(benchmark.blocks) == CALLS.blocks[1]
    for block in benchmark.blocks:
        assert [batch.per_call_s for batch in block["candidate"]] == pytest.approx([5e-5] * 2)


def test_batches_wait_no_longer_when_hosts_are_quick_again(sides):
    child = sides.add("candidate", call_s=5e-5, host_s=2e-4)
    sides.add("eager")
    benchmark = ready(sides, effort=CALLS)
    child.host_s = 1e-6
    child.requests.clear()
    benchmark.run(never)
    waited = [batch.head_start_s for batch in child.of(RunBatch)]
    assert waited[0] > 2 * HEAD_START_S
    assert waited[-1] == HEAD_START_S


def test_a_host_may_be_too_slow_for_graphs_too(sides):
    child = sides.add("candidate", call_s=5e-5)
    benchmark = ready(sides)
    child.launch_s = 1e-3
    benchmark.run(never)
    assert benchmark.graphs
    assert set(benchmark.disturbed) == {STARVED}
    # Each time batches wait twice as long.
    assert len(benchmark.disturbed) <= 6
    assert len(benchmark.blocks) == SMALL.blocks[1]
    for block in benchmark.blocks:
        assert [batch.per_call_s for batch in block["candidate"]] == pytest.approx([5e-5] * 2)


def test_a_candidate_that_claims_a_slow_host_wastes_little_time(sides, clock):
    child = sides.add("candidate", call_s=5e-5, claims=0.1, claims_host_s=1.0)
    benchmark = ready(sides, effort=CALLS)
    benchmark.run(never)
    assert len(benchmark.blocks) == CALLS.blocks[1]
    assert len(benchmark.disturbed) <= 1
    assert max(batch.head_start_s for batch in child.of(RunBatch)) <= MOST_HEAD_START_S


@pytest.mark.parametrize("end", ["died", "timeout", "lost"])
def test_a_child_that_is_gone_after_its_capture_ends_the_benchmark(sides, end):
    sides.add("candidate", ends={CaptureGraphs: end})
    with pytest.raises(SideError) as error:
        ready(sides)
    assert (error.value.name, error.value.seen.ended) == ("candidate", end)


@pytest.mark.parametrize("kind", [PrepareInputs, AllocateBuffers, FillBuffers, RunBatch])
def test_whoever_cannot_go_on_is_named(sides, kind):
    sides.add("candidate")
    sides.add("eager", ends={kind: "raised"})
    with pytest.raises(SideError, match="eager: raised: as the script says") as error:
        ready(sides)
    assert error.value.name == "eager"


def test_a_disturbed_block_is_repeated_and_counted(sides):
    child = sides.add("candidate")
    sides.add("eager")
    benchmark = ready(sides)
    child.requests.clear()
    # The first answer is about what was before.
    said = iter(["before", None, "throttled", None, "others", None])
    benchmark.run(never, lambda: next(said, None))
    assert benchmark.disturbed == ["throttled", "others"]
    assert len(benchmark.blocks) == SMALL.blocks[1]
    assert len(measured_laps(child)) == 2 * (len(benchmark.blocks) + 2)


def test_blocks_of_a_device_that_is_always_disturbed_count_in_the_end(sides):
    sides.add("candidate")
    benchmark = ready(sides, effort=replace(SMALL, repeats=3))
    benchmark.run(never, lambda: "throttled")
    assert benchmark.disturbed == ["throttled"] * 3
    assert len(benchmark.blocks) == SMALL.blocks[1]


def test_enough_ends_it_after_the_fewest_blocks(sides):
    sides.add("candidate")
    benchmark = ready(sides)
    benchmark.run(lambda c: True)
    assert len(benchmark.blocks) == SMALL.blocks[0]


def test_the_stopping_rule_runs_after_every_further_block(sides):
    sides.add("candidate")
    benchmark = ready(sides)
    benchmark.run(lambda c: len(c.blocks) >= 10)
    assert len(benchmark.blocks) == 10


def test_no_block_begins_once_the_budget_is_spent(sides, clock):
    sides.add("candidate")
    benchmark = ready(sides, effort=replace(SMALL, budget_s=1000.0))

    def time_passes():
        clock.now += 101.0

    benchmark.run(never, time_passes)
    assert len(benchmark.blocks) == 9


def test_a_spent_budget_does_not_take_the_fewest_blocks(sides):
    sides.add("candidate")
    benchmark = ready(sides, effort=replace(SMALL, budget_s=0.0))
    benchmark.run(never)
    assert len(benchmark.blocks) == SMALL.blocks[0]


def test_a_benchmark_tells_what_it_spent_step_by_step(sides, clock):
    sides.add("candidate")
    benchmark = ready(sides)
    prepared = benchmark.spent
    assert prepared.keys() >= {"compiling", "gauging", "capturing", "settling", "contents"}

    def looks():
        clock.now += 0.5

    benchmark.run(lambda c: True, looks)
    after = benchmark.spent
    assert after["looking"] == pytest.approx(0.5 * SMALL.blocks[0])
    assert after["calls"] - prepared["calls"] > after["device"] - prepared["device"] > 0
    assert after["compiling"] == prepared["compiling"]


def known_contents(count=2):
    return make_bench_inputs(RELU, CASE).draw(stream(9, "known"), count)


@pytest.mark.parametrize("effort", [SMALL, CALLS])
def test_a_graded_batch_ends_with_known_contents(sides, effort):
    child = sides.add("candidate")
    sides.add("eager")
    contents = known_contents()
    benchmark = ready(sides, effort=effort, known=contents)
    benchmark.run(never)
    # Outside of graphs a shortest batch is shown, too.
    each = 1 if benchmark.graphs else 2
    assert each <= len(benchmark.shown) <= each * SMALL.shown
    for shown in benchmark.shown:
        assert shown.at in contents
        assert shown.seen.message == f"({shown.at['x'].start},)"
    assert len(child.of(ShowResult)) == len(benchmark.shown)
    assert not sides.children["eager"].of(ShowResult)


def test_shortest_batches_are_graded_if_calls_could_finish_before_they_begin(sides):
    child = sides.add("candidate")
    benchmark = ready(sides, effort=CALLS, known=known_contents())
    benchmark.run(never)
    batches = [m for m in child.requests if isinstance(m, RunBatch | ShowResult)]
    shown = [
        len(batch.buffers) for batch, then in pairwise(batches) if isinstance(then, ShowResult)
    ]
    assert shown
    assert shown.count(SHORTEST) == len(shown) / 2
    # Where calls are sampled, these show it.
    sides.made.clear()
    child = sides.add("candidate")
    benchmark = ready(sides, effort=CALLS, known=known_contents(), elements=ELEMENTS)
    benchmark.run(never)
    assert 1 <= len(benchmark.shown) <= CALLS.shown


def test_batches_are_always_graded_within_the_fewest_blocks(sides):
    sides.add("candidate")
    benchmark = ready(sides, known=known_contents())
    benchmark.run(lambda c: True)
    assert benchmark.shown


def test_where_nothing_is_known_nothing_is_shown(sides):
    child = sides.add("candidate")
    ready(sides).run(never)
    assert child.of(ShowResult) == []


def test_the_graded_batches_cannot_be_foreseen(clock):
    seen = set()
    for seed in range(12):
        sides = Sides(clock)
        child = sides.add("candidate")
        ready(sides, seed=seed, known=known_contents()).run(never)
        batches = [type(m) for m in child.requests if isinstance(m, RunBatch | ShowResult)]
        seen.add(batches.index(ShowResult))
    assert len(seen) > 3


# The one output that RELU has here.
ELEMENTS = (32,)


@EFFORTS
def test_checked_calls_get_known_contents_while_the_batch_runs(sides, effort):
    child = sides.add("candidate")
    contents = known_contents()
    benchmark = ready(sides, effort=effort, known=contents, elements=ELEMENTS)
    benchmark.run(never)
    shown = [seen.message for seen in (s.seen for s in benchmark.spot_checks)]
    assert shown == [str([(at["x"].start,) for at in s.at]) for s in benchmark.spot_checks]
    for spot_checks in benchmark.spot_checks:
        assert all(at in contents for at in spot_checks.at)
        # What stayed from one call is no right result of the next.
        assert all(a != b for a, b in pairwise(spot_checks.at))
    assert {
        buffer for spot_check in child.of(SpotCheck) for buffer in spot_check.buffers
    }.isdisjoint(range(SPARE))
    # When its batch began, a sampled call had other contents, but for the chance of one in 2,000.
    requests, early = child.requests, 0
    for shows in (i for i, m in enumerate(requests) if m == ShowResult(spot_checks=True)):
        spot_check = next(m for m in requests[shows::-1] if isinstance(m, SpotCheck) and m.buffers)
        refill = next(m for m in requests[shows::-1] if isinstance(m, FillBuffers))
        given = dict(zip(refill.buffers, refill.windows[0], strict=True))
        waiting = {at["x"].start for at in contents}
        early += sum(given[buffer] in waiting for buffer in spot_check.buffers)
    assert early < 3


@EFFORTS
def test_batches_are_checked_early_and_at_the_very_end(sides, effort):
    sides.add("candidate")
    sides.add("eager")
    benchmark = ready(sides, effort=effort, known=known_contents(), elements=ELEMENTS)
    benchmark.run(lambda c: True)
    assert effort.spot_checks < len(benchmark.spot_checks) <= effort.blocks[0]
    assert sum(len(s.at) for s in benchmark.spot_checks) >= effort.spot_checks * ENOUGH
    assert not sides.children["eager"].of(SpotCheck)
    assert [type(m) for m in sides.children["candidate"].requests[-4:]].count(ShowResult) == 1


def test_with_two_calls_a_batch_more_batches_are_checked(sides):
    sides.add("candidate", call_s=5e-3)
    benchmark = ready(sides, effort=CALLS, known=known_contents(), elements=ELEMENTS)
    benchmark.run(lambda c: True)
    assert benchmark.buffers == 2
    assert len(benchmark.spot_checks) == CALLS.blocks[0] + 1
    assert sum(len(s.at) for s in benchmark.spot_checks) >= 9


@EFFORTS
def test_a_candidate_that_stopped_working_is_checked_after_the_last_block(sides, effort):
    child = sides.add("candidate")
    benchmark = ready(
        sides, effort=replace(effort, spot_checks=0), known=known_contents(), elements=ELEMENTS
    )
    benchmark.run(lambda c: True)
    assert len(benchmark.spot_checks) == 1
    last = max(i for i, m in enumerate(child.requests) if m == ShowResult(spot_checks=True))
    assert not any(
        isinstance(m, RunBatch) and len(m.buffers) > SHORTEST for m in child.requests[last:]
    )


def test_checked_groups_stand_anywhere_in_a_batch_of_usual_length(clock):
    places = set()
    for seed in range(6):
        sides = Sides(clock)
        child = sides.add("candidate")
        benchmark = ready(sides, seed=seed, known=known_contents(), elements=ELEMENTS)
        benchmark.run(never)
        for batch in child.of(RunBatch):
            if WARM + 1 in batch.buffers and len(batch.buffers) > SHORTEST:
                assert GROUPS // 2 <= len(batch.buffers) <= GROUPS
                assert len({*batch.buffers}) == len(batch.buffers)
                assert {*checked_groups(benchmark.buffers)} <= {*batch.buffers}
                places.add(batch.buffers.index(WARM + 1))
    assert len(places) > 3


@EFFORTS
def test_long_benchmarks_are_sampled_to_their_end(sides, effort):
    sides.add("candidate")
    benchmark = ready(
        sides, effort=replace(effort, blocks=(8, 108)), known=known_contents(), elements=ELEMENTS
    )
    benchmark.run(never)
    assert 6 <= len(benchmark.spot_checks) - effort.spot_checks - 1 <= 24


@EFFORTS
def test_checked_batches_do_not_count_and_look_like_others(sides, effort):
    child = sides.add("candidate")
    benchmark = ready(sides, effort=effort, known=known_contents(), elements=ELEMENTS)
    child.requests.clear()
    benchmark.run(never)
    batches = child.of(RunBatch)
    assert len(measured_laps(child)) == 2 * len(benchmark.blocks) + len(benchmark.spot_checks)
    # Each is followed by a short one, whatever it is for.
    assert [len(batch.buffers) > SHORTEST for batch in batches] == [True, False] * (
        len(batches) // 2
    )
    spot_checks = [batch for batch in batches if WARM + 1 in batch.buffers and benchmark.graphs]
    assert len([batch for batch in spot_checks if len(batch.buffers) > SHORTEST]) == (
        len(benchmark.spot_checks) if benchmark.graphs else 0
    )
    counts = {len(batch.buffers) for batch in measured_laps(child)}
    assert all(
        len(batch.buffers) in counts for batch in spot_checks if len(batch.buffers) > SHORTEST
    )


def test_of_graphs_dozens_of_captured_calls_are_sampled(clock):
    for call_s in (4e-6, 2e-5, 5e-5):
        sides = Sides(clock)
        child = sides.add("candidate", call_s=call_s)
        benchmark = ready(sides, known=known_contents(), elements=ELEMENTS)
        (spot_check,) = child.of(SpotCheck)
        groups = child.of(CaptureGraphs)[0].groups
        spot_checks = [
            len({*groups[i]} & {*spot_check.buffers}) for i in checked_groups(benchmark.buffers)
        ]
        assert min(spot_checks) > 0
        assert sum(spot_checks) == len({*spot_check.buffers}) >= min(64, benchmark.buffers // 4)


def test_calls_without_graphs_are_checked_in_one_batch_only(sides):
    child = sides.add("candidate")
    benchmark = ready(sides, effort=CALLS, known=known_contents(), elements=ELEMENTS)
    benchmark.run(never)
    kinds = [bool(m.buffers) for m in child.of(SpotCheck)]
    assert kinds == [True, False] * len(benchmark.spot_checks)
    for spot_check, batch in pairwise(
        [m for m in child.requests if isinstance(m, SpotCheck | RunBatch)]
    ):
        if isinstance(spot_check, SpotCheck) and spot_check.buffers:
            assert set(spot_check.buffers) <= set(batch.buffers)


def test_checked_groups_are_dropped_if_another_side_cannot_be_captured(sides):
    child = sides.add("candidate")
    sides.add("eager", ends={CaptureGraphs: "raised"})
    benchmark = ready(sides, known=known_contents(), elements=ELEMENTS)
    assert not benchmark.graphs
    assert child.of(SpotCheck)[-1].buffers == ()
    benchmark.run(never)
    assert benchmark.spot_checks


@pytest.mark.parametrize("without", [{"known": ()}, {"elements": ()}])
def test_where_single_elements_cannot_be_judged_no_call_is_sampled(sides, without):
    child = sides.add("candidate")
    benchmark = ready(sides, **{"known": known_contents(), "elements": ELEMENTS} | without)
    benchmark.run(never)
    assert not child.of(SpotCheck)
    assert not benchmark.spot_checks


@pytest.mark.parametrize(
    ("elements", "most"), [((LARGE,), SMALL.shown), ((LARGE, 1), 1), ((), SMALL.shown)]
)
def test_large_results_are_shown_once_where_calls_are_sampled(clock, elements, most):
    seen = set()
    for seed in range(6):
        sides = Sides(clock)
        sides.add("candidate")
        benchmark = ready(sides, known=known_contents(), elements=elements, seed=seed)
        benchmark.run(never)
        seen.add(len(benchmark.shown))
    assert max(seen) == most


def test_a_second_benchmark_finds_baselines_with_inputs(sides):
    sides.add("candidate")
    eager = sides.add("eager")
    first = ready(sides)
    again = Sides(sides.clock)
    candidate = again.add("candidate")
    benchmark = again.benchmark()
    benchmark.sides.append(first.sides[1])
    benchmark.prepare()
    assert benchmark.buffers == first.buffers
    assert candidate.buffers == count_all_buffers(benchmark.buffers)
    assert len(eager.of(PrepareInputs)) == 1
    assert len(eager.of(CaptureGraphs)) == 1


def again_with(first, **script):
    """A benchmark of the same baseline with another candidate."""
    again = Sides(first.sides[1].child.clock)
    again.add("candidate", **script)
    benchmark = again.benchmark()
    benchmark.sides.append(first.sides[1])
    benchmark.prepare()
    return benchmark


@pytest.mark.parametrize(("before_s", "now_s"), [(8e-5, 2e-5), (2e-5, 8e-5), (3e-4, 3e-5)])
def test_an_earlier_candidate_does_not_fix_the_length_of_batches(sides, before_s, now_s):
    sides.add("candidate", call_s=before_s)
    eager = sides.add("eager", call_s=2e-4)
    found = again_with(ready(sides), call_s=now_s)
    alone = Sides(sides.clock)
    alone.add("candidate", call_s=now_s)
    alone.add("eager", call_s=2e-4)
    expected = ready(alone)
    assert (found.buffers, found.graphs) == (expected.buffers, expected.graphs)
    assert {side.buffers for side in found.sides} == {found.buffers}
    assert eager.buffers == count_all_buffers(found.buffers)
    found.run(never)
    assert len(found.blocks) == SMALL.blocks[1]
    # It is neither stocked nor compiled again.
    assert len(eager.of(PrepareInputs)) == 1


@pytest.mark.parametrize(
    ("slow_s", "buffers"), [(5e-4, None), (2e-2, 10), (6e-2, 3), (0.5, 2)], ids=str
)
def test_batches_are_no_longer_than_the_slowest_side_allows(sides, slow_s, buffers):
    """A reference that is a loop takes thousands of times as long as a kernel."""
    sides.add("candidate", call_s=2e-5)
    sides.add("eager", call_s=slow_s)
    benchmark = ready(sides)
    if buffers is None:
        assert benchmark.buffers > 100
    else:
        assert benchmark.buffers == buffers
        assert not benchmark.graphs
    assert benchmark.buffers * slow_s <= max(LONGEST_BATCH_S, 2 * slow_s)
    benchmark.run(never)
    assert len(benchmark.blocks) >= SMALL.blocks[0]


def test_a_baseline_shows_what_it_gives_for_known_contents(sides):
    sides.add("candidate")
    eager = sides.add("eager")
    benchmark = ready(sides, known=known_contents())
    before, blocks = len(eager.of(RunBatch)), len(benchmark.blocks)
    shown = list(benchmark.show_known(benchmark.sides[1]))
    assert [each.at for each in shown] == list(benchmark.known)
    # Each by a call of its own, which is not measured.
    assert [batch.buffers for batch in eager.of(RunBatch)[before:]] == [(0,), (0,)]
    assert len(benchmark.blocks) == blocks


def test_a_batch_of_another_kind_tunes_no_head_start(sides):
    """Calls one by one come after graphs where a candidate cannot be captured."""
    sides.add("candidate", call_s=5e-5)
    eager = sides.add("eager", call_s=2e-4)
    first = ready(sides)
    for expected in (2, 1):
        before = len(eager.of(RunBatch))
        again_with(first, call_s=5e-5, ends={CaptureGraphs: "raised"})
        assert len(eager.of(RunBatch)[before:]) == expected


def test_a_little_slower_or_quicker_a_candidate_finds_the_rows_that_are_there(sides):
    sides.add("candidate", call_s=5e-5)
    eager = sides.add("eager", call_s=2e-4)
    first = ready(sides)
    made = len(eager.of(AllocateBuffers))
    for call_s in (4e-5, 7e-5):
        assert again_with(first, call_s=call_s).buffers == first.buffers
    assert len(eager.of(AllocateBuffers)) == made


@pytest.mark.parametrize(("again_s", "batches"), [(5e-5, 1), (2e-6, 2)])
def test_a_baseline_with_unchanged_buffers_is_tuned_by_one_batch(sides, again_s, batches):
    sides.add("candidate", call_s=5e-5)
    eager = sides.add("eager", call_s=2e-4)
    first = ready(sides)
    before = len(eager.of(RunBatch))
    again = again_with(first, call_s=again_s)
    # With other rows, memory is allocated and graphs are brought to the device anew.
    assert (again.buffers == first.buffers) is (batches == 1)
    assert len([batch for batch in eager.of(RunBatch)[before:] if batch.graphs]) == batches


@pytest.mark.parametrize(("effort", "calls"), [(SMALL, 1), (CALLS, 2)])
def test_a_short_batch_shows_the_overhead_of_the_one_before(sides, effort, calls):
    child = sides.add("candidate", around_s=3e-4)
    sides.add("eager")
    benchmark = ready(sides, effort=effort)
    before = len(child.of(RunBatch))
    benchmark.run(never)
    assert [len(batch.buffers) for batch in child.of(RunBatch)[before + 1 :: 2]] == [
        calls
    ] * 2 * len(benchmark.blocks)
    assert all(
        each == {"candidate": pytest.approx((HEAD_START_S + 3e-4,) * 2)}
        for each in benchmark.overheads
    )
    assert len(benchmark.overheads) == len(benchmark.blocks)


def test_the_first_call_is_timed_apart_from_the_next(sides, clock):
    child = sides.add("candidate")
    send, compiled = child.request, []

    def compiles(message, **more):
        if isinstance(message, RunBatch) and not compiled:
            compiled.append(True)
            clock.now += 2.5
        return send(message, **more)

    child.request = compiles
    side = ready(sides).sides[0]
    assert side.first_s == pytest.approx(2.5 + HEAD_START_S + 1e-4 + 2e-5)
    assert side.second_s == pytest.approx(HEAD_START_S + 1e-4 + 2e-5)


def test_warm_calls_are_made_on_request(sides):
    child = sides.add("candidate")
    benchmark = ready(sides, effort=replace(CALLS, warm=False))
    child.requests.clear()
    benchmark.measure_warm()
    assert child.requests == []
    assert benchmark.sides[0].warm_s is None


def test_warm_calls_share_one_row(sides):
    child = sides.add("candidate")
    benchmark = ready(sides, effort=CALLS)
    child.requests.clear()
    benchmark.measure_warm()
    assert {buffer for batch in child.of(RunBatch) for buffer in batch.buffers} == {0}
    assert benchmark.sides[0].warm_s == pytest.approx(child.call_s)


def test_warm_calls_of_a_graph_are_those_of_its_last_group(sides):
    child = sides.add("candidate")
    benchmark = ready(sides)
    child.requests.clear()
    benchmark.measure_warm()
    assert {batch.buffers for batch in child.of(RunBatch)} == {(WARM,)}
    assert benchmark.sides[0].warm_s == pytest.approx(child.call_s)


def test_peak_memory_is_that_of_the_largest_batch(sides):
    sides.add("candidate")
    benchmark = ready(sides)
    assert benchmark.sides[0].peak_bytes > 0


def test_the_flush_is_for_devices_only(sides):
    child = sides.add("candidate")
    ready(sides, effort=CALLS, on_gpu=False)
    assert child.of(PrepareInputs)[0].flush_bytes == 0
    assert measured_laps(child)


def test_a_side_warmed_up_ahead_compiles_once(sides):
    eager = sides.add("eager")
    ahead = sides.benchmark()
    ahead.warm_up()
    assert len(eager.of(PrepareInputs)) == 1
    assert ahead.sides[0].buffers == 0
    sides.add("candidate")
    benchmark = ready(sides)
    assert len(eager.of(PrepareInputs)) == 1
    assert all(side.readiness is Readiness.READY for side in benchmark.sides)


def test_calls_are_estimated_when_no_side_compiles_any_more(sides):
    child = sides.add("eager", call_s=3e-5)
    sides.benchmark().warm_up()
    child.call_s = 2e-5
    assert ready(sides).sides[0].warm_up_s == pytest.approx(2e-5, rel=0.1)


def test_baselines_alone_run_some_batches_and_the_first_does_not_count(sides):
    children = candidate, eager, others = [sides.add(n) for n in ("candidate", "eager", "compile")]
    benchmark = ready(sides)
    for child in children:
        child.requests.clear()
    found = benchmark.time_without_candidate(["eager"], 3)
    assert {name: len(batches) for name, batches in found.items()} == {"eager": 3}
    assert len(eager.of(RunBatch)) == 4
    assert not candidate.requests
    # Nobody spends time on those that were not beaten.
    assert not others.requests


def test_nothing_counts_before_a_device_has_settled(sides, clock):
    sides.add("candidate")
    eager = sides.add("eager", call_s=1e-5)
    benchmark = ready(sides)
    began, send = clock.now, eager.request

    def slower_later(message, **more):
        eager.call_s = 1e-5 if clock.now - began < 0.01 else 2e-5
        return send(message, **more)

    eager.request = slower_later
    assert benchmark.time_without_candidate(["eager"], 3, settle_s=0.02) == {
        "eager": [pytest.approx(2e-5)] * 3
    }
