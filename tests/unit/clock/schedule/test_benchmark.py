"""The course of a contest, with children whose clocks are scripts."""

from dataclasses import replace
from itertools import pairwise

import pytest
from timed_children import CASE, MANY, RELU, SHORTEST, SMALL, Sides, measured_laps

from kerneltruth.cases.philox import stream
from kerneltruth.clock.integrity.spot_checks import ENOUGH
from kerneltruth.clock.protocol.inputs import stocked
from kerneltruth.clock.protocol.rows import (
    GROUPS,
    LONGEST_S,
    SPARE,
    WARM,
    count_all,
    sampled_groups,
)
from kerneltruth.clock.protocol.sides import ContestError
from kerneltruth.clock.schedule.batches import AHEAD_S, DOUBT, MOST_AHEAD_S
from kerneltruth.clock.schedule.benchmark import LARGE, STARVED
from kerneltruth.runner.timing.messages import Capture, Lap, Refill, Rows, Sample, Show, Stock

CALLS = replace(SMALL, graph_below_s=0.0)
EFFORTS = pytest.mark.parametrize("effort", [SMALL, CALLS])


@pytest.fixture
def sides(clock):
    return Sides(clock)


def never(contest):
    return False


def in_turn(sides, contest):
    """Whose laps were measured, in order, as the judge asked for them."""
    order = []
    for name, child in sides.children.items():
        child.errand = record(child.errand, order, name)
    contest.run(never)
    return order


def record(errand, order, who):
    def recorded(message, **more):
        if isinstance(message, Lap) and len(message.rows) > SHORTEST:
            order.append((who, len(message.rows)))
        return errand(message, **more)

    return recorded


def ready(sides, **more):
    contest = sides.contest(**more)
    contest.prepare()
    return contest


def test_a_block_runs_everyone_and_then_everyone_backwards(sides):
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
def test_both_sides_of_a_pass_make_as_many_calls_and_nobody_can_know_how_many(sides, effort):
    sides.add("candidate")
    sides.add("eager", call_s=5e-5)
    contest = ready(sides, effort=effort)
    contest.run(never)
    counts = []
    for block in contest.blocks:
        for own, other in zip(block["candidate"], block["eager"], strict=True):
            assert own.calls == other.calls
            counts.append(own.calls)
    assert len(set(counts)) > 2
    assert contest.rows / 2 <= min(counts) <= max(counts) <= contest.rows


def test_everyone_has_as_many_rows(sides):
    fast, slow = sides.add("candidate", call_s=3e-6), sides.add("eager", call_s=9e-5)
    contest = ready(sides)
    assert {c.of(Rows)[-1].count for c in (fast, slow)} == {count_all(contest.rows)}


@pytest.mark.parametrize("claims", [0.0, 1e-6])
def test_whoever_claims_to_take_no_time_does_not_make_laps_long(sides, claims):
    child = sides.add("candidate", call_s=2e-3, claims=claims)
    sides.add("eager", call_s=2e-3)
    contest = ready(sides)
    assert contest.rows <= 3 * DOUBT * SMALL.lap_s / 2e-3
    assert max(len(lap.rows) for lap in child.of(Lap)) <= 64


def test_rows_fit_into_the_memory_that_is_granted(sides):
    sides.add("candidate", call_s=1e-7)
    contest = ready(sides, effort=replace(SMALL, memory_bytes=128 * 40))
    assert contest.rows == 3 * GROUPS
    assert count_all(contest.rows) == SPARE + 3 * (GROUPS + 4) == 40


def test_two_rows_are_the_fewest_whatever_memory_is_granted(sides):
    sides.add("candidate", call_s=1e-7)
    contest = ready(sides, effort=replace(SMALL, memory_bytes=1))
    assert (contest.rows, contest.graphs) == (2, False)


def test_spare_rows_are_never_part_of_a_measured_lap(sides):
    child = sides.add("candidate")
    contest = ready(sides, effort=CALLS)
    child.asked.clear()
    contest.run(never)
    rows = [row for lap in child.of(Lap) for row in lap.rows]
    assert min(rows) >= SPARE


def test_every_call_of_a_lap_has_a_row_and_contents_of_its_own(sides):
    child = sides.add("candidate")
    contest = ready(sides, effort=CALLS)
    child.asked.clear()
    contest.run(never)
    laps, refills = measured_laps(child), child.of(Refill)
    assert len(laps) == len(refills) == 2 * SMALL.blocks[1]
    for lap, refill in zip(laps, refills, strict=True):
        assert len(set(lap.rows)) == len(lap.rows)
        assert set(refill.rows) == set(lap.rows)
    starts = [start for refill in refills for start in refill.windows[0]]
    assert len(set(starts)) > len(starts) / 4


@pytest.mark.parametrize("effort", [CALLS, MANY])
def test_in_a_pass_of_a_block_all_sides_have_the_same_contents(sides, effort):
    """Or those whose calls take as long as what they hold says would differ by chance."""
    children = [sides.add(name) for name in ("candidate", "eager", "compile")]
    contest = ready(sides, effort=effort)
    for child in children:
        child.asked.clear()
    contest.run(never)
    passes = []
    for child in children:
        laps = [refill.windows for refill in child.of(Refill) if len(refill.rows) > 1]
        passes.append(laps)
    assert passes[0] == passes[1] == passes[2]
    # And other ones in each pass.
    assert len({*passes[0]}) == len(passes[0]) == 2 * len(contest.blocks)


def test_groups_of_a_graph_hold_all_rows_once(sides):
    child = sides.add("candidate")
    contest = ready(sides)
    assert contest.graphs
    (capture,) = child.of(Capture)
    groups = [g for i, g in enumerate(capture.groups) if i != WARM]
    assert sorted(row for g in groups for row in g) == [*range(SPARE, count_all(contest.rows))]
    assert set(capture.groups[WARM]) == {0}
    assert sorted(capture.order) == [*range(len(capture.groups))]


def test_neither_address_nor_order_tells_which_group_is_which(clock):
    found, orders = set(), set()
    for seed in range(4):
        sides = Sides(clock)
        child = sides.add("candidate")
        ready(sides, seed=seed)
        (capture,) = child.of(Capture)
        found |= {*capture.groups[WARM + 1 :]}
        orders.add(capture.order)
    assert len(orders) == 4
    assert len(found) > 4
    assert all(max(g) - min(g) >= 2 * len(g) for g in found)


def test_long_calls_are_not_captured(sides):
    child = sides.add("candidate", call_s=2e-4)
    contest = ready(sides)
    assert not contest.graphs
    assert contest.why_not_captured is None
    assert child.of(Capture) == []


def test_if_one_side_cannot_be_captured_nobody_is(sides):
    candidate = sides.add("candidate", ends={Capture: "raised"})
    eager = sides.add("eager")
    contest = ready(sides)
    contest.run(never)
    assert not contest.graphs
    assert (candidate.restarts, eager.restarts) == (1, 0)
    assert "as the script says" in contest.why_not_captured
    assert not any(lap.graphs for child in (candidate, eager) for lap in child.of(Lap))
    assert len(contest.blocks) == SMALL.blocks[1]


def test_a_child_whose_capture_failed_is_stocked_again_in_a_fresh_process(sides):
    child = sides.add("candidate", ends={Capture: "raised"})
    contest = ready(sides)
    assert len(child.of(Stock)) == 2
    assert child.rows == count_all(contest.rows)


def test_a_baseline_whose_capture_failed_is_timed_by_calls_though_its_child_forgets(sides):
    """As one that contests on several cases share."""
    sides.add("candidate")
    child = sides.add("eager", ends={Capture: "raised"})
    begin_anew, eager = child.restart, sides.made[1]

    def restart():
        begin_anew()
        eager.forget_rows()

    child.restart = restart
    contest = ready(sides)
    assert not contest.graphs
    assert eager.rows == contest.rows
    assert child.rows == count_all(contest.rows)
    contest.run(never)
    assert all(block["eager"] for block in contest.blocks)


@EFFORTS
def test_contents_are_hidden_before_measured_laps_that_are_not_in_graphs(sides, effort):
    candidate, eager = sides.add("candidate"), sides.add("eager")
    contest = ready(sides, effort=effort)
    for child in (candidate, eager):
        child.asked.clear()
    contest.run(never)
    for child in (candidate, eager):
        assert {lap.hidden for lap in child.of(Lap)} == {not contest.graphs}


@pytest.mark.parametrize(("room", "rows"), [(16, 12), (27, 15), (28, 16)])
def test_calls_are_captured_where_memory_holds_two_for_each_graph(sides, room, rows):
    """Laps of graphs of a single call scatter more than those of as many calls one by one."""
    child = sides.add("candidate", call_s=9e-5)
    contest = ready(sides, effort=replace(SMALL, memory_bytes=128 * room))
    assert (contest.rows, contest.graphs) == (rows, rows == 2 * GROUPS)
    sizes = [len(g) for capture in child.of(Capture) for g in capture.groups]
    assert sizes == ([2] * (GROUPS + 1 + 4) if contest.graphs else [])
    why_not = f"memory holds inputs for {rows} calls; graphs take 16"
    assert contest.why_not_captured == (None if contest.graphs else why_not)
    contest.run(never)
    assert len(contest.blocks) == SMALL.blocks[1]


def test_where_hosts_are_slower_than_the_device_all_sides_are_kept_waiting(sides):
    candidate = sides.add("candidate", call_s=5e-5, host_s=3e-5)
    eager = sides.add("eager", call_s=8e-5, host_s=2e-4)
    contest = ready(sides, effort=CALLS)
    for child in (candidate, eager):
        child.asked.clear()
    contest.run(never)
    (ahead_s,) = {lap.ahead_s for child in (candidate, eager) for lap in child.of(Lap)}
    assert ahead_s >= contest.rows * 2e-4
    assert contest.disturbed == []
    for block in contest.blocks:
        assert [lap.per_call_s for lap in block["eager"]] == pytest.approx([8e-5] * 2)


def test_a_block_in_which_a_host_became_too_slow_is_repeated_with_more_time(sides):
    child = sides.add("candidate", call_s=5e-5, host_s=3e-5)
    sides.add("eager")
    contest = ready(sides, effort=CALLS)
    child.host_s = 2e-4
    contest.run(never)
    assert set(contest.disturbed) == {STARVED}
    # Each time laps wait twice as long.
    assert len(contest.disturbed) <= 6
    assert len(contest.blocks) == CALLS.blocks[1]
    for block in contest.blocks:
        assert [lap.per_call_s for lap in block["candidate"]] == pytest.approx([5e-5] * 2)


def test_laps_wait_no_longer_when_hosts_are_quick_again(sides):
    child = sides.add("candidate", call_s=5e-5, host_s=2e-4)
    sides.add("eager")
    contest = ready(sides, effort=CALLS)
    child.host_s = 1e-6
    child.asked.clear()
    contest.run(never)
    waited = [lap.ahead_s for lap in child.of(Lap)]
    assert waited[0] > 2 * AHEAD_S
    assert waited[-1] == AHEAD_S


def test_a_host_may_be_too_slow_for_graphs_too(sides):
    child = sides.add("candidate", call_s=5e-5)
    contest = ready(sides)
    child.launch_s = 1e-3
    contest.run(never)
    assert contest.graphs
    assert set(contest.disturbed) == {STARVED}
    # Each time laps wait twice as long.
    assert len(contest.disturbed) <= 6
    assert len(contest.blocks) == SMALL.blocks[1]
    for block in contest.blocks:
        assert [lap.per_call_s for lap in block["candidate"]] == pytest.approx([5e-5] * 2)


def test_a_candidate_that_claims_a_slow_host_wastes_little_time(sides, clock):
    child = sides.add("candidate", call_s=5e-5, claims=0.1, claims_host_s=1.0)
    contest = ready(sides, effort=CALLS)
    contest.run(never)
    assert len(contest.blocks) == CALLS.blocks[1]
    assert len(contest.disturbed) <= 1
    assert max(lap.ahead_s for lap in child.of(Lap)) <= MOST_AHEAD_S


@pytest.mark.parametrize("end", ["died", "timeout", "lost"])
def test_a_child_that_is_gone_after_its_capture_ends_the_contest(sides, end):
    sides.add("candidate", ends={Capture: end})
    with pytest.raises(ContestError) as error:
        ready(sides)
    assert (error.value.name, error.value.seen.ended) == ("candidate", end)


@pytest.mark.parametrize("kind", [Stock, Rows, Refill, Lap])
def test_whoever_cannot_go_on_is_named(sides, kind):
    sides.add("candidate")
    sides.add("eager", ends={kind: "raised"})
    with pytest.raises(ContestError, match="eager: raised: as the script says") as error:
        ready(sides)
    assert error.value.name == "eager"


def test_a_disturbed_block_is_repeated_and_counted(sides):
    child = sides.add("candidate")
    sides.add("eager")
    contest = ready(sides)
    child.asked.clear()
    # The first answer is about what was before.
    said = iter(["before", None, "throttled", None, "others", None])
    contest.run(never, lambda: next(said, None))
    assert contest.disturbed == ["throttled", "others"]
    assert len(contest.blocks) == SMALL.blocks[1]
    assert len(measured_laps(child)) == 2 * (len(contest.blocks) + 2)


def test_blocks_of_a_device_that_is_always_disturbed_count_in_the_end(sides):
    sides.add("candidate")
    contest = ready(sides, effort=replace(SMALL, repeats=3))
    contest.run(never, lambda: "throttled")
    assert contest.disturbed == ["throttled"] * 3
    assert len(contest.blocks) == SMALL.blocks[1]


def test_enough_ends_it_after_the_fewest_blocks(sides):
    sides.add("candidate")
    contest = ready(sides)
    contest.run(lambda c: True)
    assert len(contest.blocks) == SMALL.blocks[0]


def test_enough_is_asked_after_every_further_block(sides):
    sides.add("candidate")
    contest = ready(sides)
    contest.run(lambda c: len(c.blocks) >= 10)
    assert len(contest.blocks) == 10


def test_no_block_begins_once_the_budget_is_spent(sides, clock):
    sides.add("candidate")
    contest = ready(sides, effort=replace(SMALL, budget_s=1000.0))

    def time_passes():
        clock.now += 101.0

    contest.run(never, time_passes)
    assert len(contest.blocks) == 9


def test_a_spent_budget_does_not_take_the_fewest_blocks(sides):
    sides.add("candidate")
    contest = ready(sides, effort=replace(SMALL, budget_s=0.0))
    contest.run(never)
    assert len(contest.blocks) == SMALL.blocks[0]


def test_a_contest_tells_what_it_spent_step_by_step(sides, clock):
    sides.add("candidate")
    contest = ready(sides)
    prepared = contest.spent
    assert prepared.keys() >= {"compiling", "gauging", "capturing", "settling", "contents"}

    def looks():
        clock.now += 0.5

    contest.run(lambda c: True, looks)
    after = contest.spent
    assert after["looking"] == pytest.approx(0.5 * SMALL.blocks[0])
    assert after["calls"] - prepared["calls"] > after["device"] - prepared["device"] > 0
    assert after["compiling"] == prepared["compiling"]


def known(count=2):
    return stocked(RELU, CASE).draw(stream(9, "known"), count)


@pytest.mark.parametrize("effort", [SMALL, CALLS])
def test_a_lap_that_is_shown_ends_with_contents_that_the_judge_knows(sides, effort):
    child = sides.add("candidate")
    sides.add("eager")
    contents = known()
    contest = ready(sides, effort=effort, known=contents)
    contest.run(never)
    # Outside of graphs a shortest lap is shown, too.
    each = 1 if contest.graphs else 2
    assert each <= len(contest.shown) <= each * SMALL.shown
    for shown in contest.shown:
        assert shown.at in contents
        assert shown.seen.message == f"({shown.at['x'].start},)"
    assert len(child.of(Show)) == len(contest.shown)
    assert not sides.children["eager"].of(Show)


def test_shortest_laps_are_shown_where_calls_could_be_done_before_they_begin(sides):
    child = sides.add("candidate")
    contest = ready(sides, effort=CALLS, known=known())
    contest.run(never)
    laps = [m for m in child.asked if isinstance(m, Lap | Show)]
    shown = [len(lap.rows) for lap, then in pairwise(laps) if isinstance(then, Show)]
    assert shown
    assert shown.count(SHORTEST) == len(shown) / 2
    # Where calls are sampled, these show it.
    sides.made.clear()
    child = sides.add("candidate")
    contest = ready(sides, effort=CALLS, known=known(), elements=ELEMENTS)
    contest.run(never)
    assert 1 <= len(contest.shown) <= CALLS.shown


def test_laps_are_shown_within_the_fewest_blocks_in_any_case(sides):
    sides.add("candidate")
    contest = ready(sides, known=known())
    contest.run(lambda c: True)
    assert contest.shown


def test_where_nothing_is_known_nothing_is_shown(sides):
    child = sides.add("candidate")
    ready(sides).run(never)
    assert child.of(Show) == []


def test_which_laps_are_shown_cannot_be_foreseen(clock):
    seen = set()
    for seed in range(12):
        sides = Sides(clock)
        child = sides.add("candidate")
        ready(sides, seed=seed, known=known()).run(never)
        laps = [type(m) for m in child.asked if isinstance(m, Lap | Show)]
        seen.add(laps.index(Show))
    assert len(seen) > 3


# Of the one output that RELU has here.
ELEMENTS = (32,)


@EFFORTS
def test_sampled_calls_get_known_contents_when_the_lap_is_under_way(sides, effort):
    child = sides.add("candidate")
    contents = known()
    contest = ready(sides, effort=effort, known=contents, elements=ELEMENTS)
    contest.run(never)
    shown = [seen.message for seen in (s.seen for s in contest.sampled)]
    assert shown == [str([(at["x"].start,) for at in s.at]) for s in contest.sampled]
    for sampled in contest.sampled:
        assert all(at in contents for at in sampled.at)
        # What stayed from one call is no right result of the next.
        assert all(a != b for a, b in pairwise(sampled.at))
    assert {row for sample in child.of(Sample) for row in sample.rows}.isdisjoint(range(SPARE))
    # When its lap began, a sampled call had other contents, but for the chance of one in 2,000.
    asked, early = child.asked, 0
    for shows in (i for i, m in enumerate(asked) if m == Show(sampled=True)):
        sample = next(m for m in asked[shows::-1] if isinstance(m, Sample) and m.rows)
        refill = next(m for m in asked[shows::-1] if isinstance(m, Refill))
        given = dict(zip(refill.rows, refill.windows[0], strict=True))
        waiting = {at["x"].start for at in contents}
        early += sum(given[row] in waiting for row in sample.rows)
    assert early < 3


@EFFORTS
def test_laps_are_sampled_early_and_when_all_is_over(sides, effort):
    sides.add("candidate")
    sides.add("eager")
    contest = ready(sides, effort=effort, known=known(), elements=ELEMENTS)
    contest.run(lambda c: True)
    assert effort.sampled < len(contest.sampled) <= effort.blocks[0]
    assert sum(len(s.at) for s in contest.sampled) >= effort.sampled * ENOUGH
    assert not sides.children["eager"].of(Sample)
    assert [type(m) for m in sides.children["candidate"].asked[-4:]].count(Show) == 1


def test_where_a_lap_has_two_calls_more_laps_are_sampled(sides):
    sides.add("candidate", call_s=5e-3)
    contest = ready(sides, effort=CALLS, known=known(), elements=ELEMENTS)
    contest.run(lambda c: True)
    assert contest.rows == 2
    assert len(contest.sampled) == CALLS.blocks[0] + 1
    assert sum(len(s.at) for s in contest.sampled) >= 9


@EFFORTS
def test_who_stopped_working_meanwhile_is_sampled_after_all_is_measured(sides, effort):
    child = sides.add("candidate")
    contest = ready(sides, effort=replace(effort, sampled=0), known=known(), elements=ELEMENTS)
    contest.run(lambda c: True)
    assert len(contest.sampled) == 1
    last = max(i for i, m in enumerate(child.asked) if m == Show(sampled=True))
    assert not any(isinstance(m, Lap) and len(m.rows) > SHORTEST for m in child.asked[last:])


def test_sampled_groups_stand_anywhere_in_a_lap_of_usual_length(clock):
    places = set()
    for seed in range(6):
        sides = Sides(clock)
        child = sides.add("candidate")
        contest = ready(sides, seed=seed, known=known(), elements=ELEMENTS)
        contest.run(never)
        for lap in child.of(Lap):
            if WARM + 1 in lap.rows and len(lap.rows) > SHORTEST:
                assert GROUPS // 2 <= len(lap.rows) <= GROUPS
                assert len({*lap.rows}) == len(lap.rows)
                assert {*sampled_groups(contest.rows)} <= {*lap.rows}
                places.add(lap.rows.index(WARM + 1))
    assert len(places) > 3


@EFFORTS
def test_long_contests_are_sampled_to_their_end(sides, effort):
    sides.add("candidate")
    contest = ready(
        sides, effort=replace(effort, blocks=(8, 108)), known=known(), elements=ELEMENTS
    )
    contest.run(never)
    assert 6 <= len(contest.sampled) - effort.sampled - 1 <= 24


@EFFORTS
def test_sampled_laps_do_not_count_and_look_as_others_do(sides, effort):
    child = sides.add("candidate")
    contest = ready(sides, effort=effort, known=known(), elements=ELEMENTS)
    child.asked.clear()
    contest.run(never)
    laps = child.of(Lap)
    assert len(measured_laps(child)) == 2 * len(contest.blocks) + len(contest.sampled)
    # Each is followed by a short one, whatever it is for.
    assert [len(lap.rows) > SHORTEST for lap in laps] == [True, False] * (len(laps) // 2)
    sampled = [lap for lap in laps if WARM + 1 in lap.rows and contest.graphs]
    assert len([lap for lap in sampled if len(lap.rows) > SHORTEST]) == (
        len(contest.sampled) if contest.graphs else 0
    )
    counts = {len(lap.rows) for lap in measured_laps(child)}
    assert all(len(lap.rows) in counts for lap in sampled if len(lap.rows) > SHORTEST)


def test_of_graphs_dozens_of_captured_calls_are_sampled(clock):
    for call_s in (4e-6, 2e-5, 5e-5):
        sides = Sides(clock)
        child = sides.add("candidate", call_s=call_s)
        contest = ready(sides, known=known(), elements=ELEMENTS)
        (sample,) = child.of(Sample)
        groups = child.of(Capture)[0].groups
        sampled = [len({*groups[i]} & {*sample.rows}) for i in sampled_groups(contest.rows)]
        assert min(sampled) > 0
        assert sum(sampled) == len({*sample.rows}) >= min(64, contest.rows // 4)


def test_calls_one_by_one_are_sampled_in_one_lap_only(sides):
    child = sides.add("candidate")
    contest = ready(sides, effort=CALLS, known=known(), elements=ELEMENTS)
    contest.run(never)
    kinds = [bool(m.rows) for m in child.of(Sample)]
    assert kinds == [True, False] * len(contest.sampled)
    for sample, lap in pairwise([m for m in child.asked if isinstance(m, Sample | Lap)]):
        if isinstance(sample, Sample) and sample.rows:
            assert set(sample.rows) <= set(lap.rows)


def test_where_someone_else_cannot_be_captured_sampled_groups_are_given_up(sides):
    child = sides.add("candidate")
    sides.add("eager", ends={Capture: "raised"})
    contest = ready(sides, known=known(), elements=ELEMENTS)
    assert not contest.graphs
    assert child.of(Sample)[-1].rows == ()
    contest.run(never)
    assert contest.sampled


@pytest.mark.parametrize("without", [{"known": ()}, {"elements": ()}])
def test_where_single_elements_cannot_be_judged_no_call_is_sampled(sides, without):
    child = sides.add("candidate")
    contest = ready(sides, **{"known": known(), "elements": ELEMENTS} | without)
    contest.run(never)
    assert not child.of(Sample)
    assert not contest.sampled


@pytest.mark.parametrize(
    ("elements", "most"), [((LARGE,), SMALL.shown), ((LARGE, 1), 1), ((), SMALL.shown)]
)
def test_large_results_are_shown_once_where_calls_are_sampled(clock, elements, most):
    seen = set()
    for seed in range(6):
        sides = Sides(clock)
        sides.add("candidate")
        contest = ready(sides, known=known(), elements=elements, seed=seed)
        contest.run(never)
        seen.add(len(contest.shown))
    assert max(seen) == most


def test_a_second_contest_finds_baselines_stocked(sides):
    sides.add("candidate")
    eager = sides.add("eager")
    first = ready(sides)
    again = Sides(sides.clock)
    candidate = again.add("candidate")
    contest = again.contest()
    contest.sides.append(first.sides[1])
    contest.prepare()
    assert contest.rows == first.rows
    assert candidate.rows == count_all(contest.rows)
    assert len(eager.of(Stock)) == 1
    assert len(eager.of(Capture)) == 1


def again_with(first, **script):
    """A contest of the same baseline with another candidate."""
    again = Sides(first.sides[1].child.clock)
    again.add("candidate", **script)
    contest = again.contest()
    contest.sides.append(first.sides[1])
    contest.prepare()
    return contest


@pytest.mark.parametrize(("before_s", "now_s"), [(8e-5, 2e-5), (2e-5, 8e-5), (3e-4, 3e-5)])
def test_who_came_before_does_not_settle_how_long_laps_are(sides, before_s, now_s):
    sides.add("candidate", call_s=before_s)
    eager = sides.add("eager", call_s=2e-4)
    found = again_with(ready(sides), call_s=now_s)
    alone = Sides(sides.clock)
    alone.add("candidate", call_s=now_s)
    alone.add("eager", call_s=2e-4)
    expected = ready(alone)
    assert (found.rows, found.graphs) == (expected.rows, expected.graphs)
    assert {side.rows for side in found.sides} == {found.rows}
    assert eager.rows == count_all(found.rows)
    found.run(never)
    assert len(found.blocks) == SMALL.blocks[1]
    # It is neither stocked nor compiled again.
    assert len(eager.of(Stock)) == 1


@pytest.mark.parametrize(
    ("slow_s", "rows"), [(5e-4, None), (2e-2, 10), (6e-2, 3), (0.5, 2)], ids=str
)
def test_laps_are_no_longer_than_the_slowest_side_allows(sides, slow_s, rows):
    """A reference that is a loop takes thousands of times as long as a kernel."""
    sides.add("candidate", call_s=2e-5)
    sides.add("eager", call_s=slow_s)
    contest = ready(sides)
    if rows is None:
        assert contest.rows > 100
    else:
        assert contest.rows == rows
        assert not contest.graphs
    assert contest.rows * slow_s <= max(LONGEST_S, 2 * slow_s)
    contest.run(never)
    assert len(contest.blocks) >= SMALL.blocks[0]


def test_a_baseline_shows_what_it_gives_for_known_contents(sides):
    sides.add("candidate")
    eager = sides.add("eager")
    contest = ready(sides, known=known())
    before, blocks = len(eager.of(Lap)), len(contest.blocks)
    shown = list(contest.show_known(contest.sides[1]))
    assert [each.at for each in shown] == list(contest.known)
    # Each by a call of its own, which nobody measures.
    assert [lap.rows for lap in eager.of(Lap)[before:]] == [(0,), (0,)]
    assert len(contest.blocks) == blocks


def test_what_was_no_lap_of_this_kind_settles_nobody(sides):
    """Calls one by one come after graphs where a candidate cannot be captured."""
    sides.add("candidate", call_s=5e-5)
    eager = sides.add("eager", call_s=2e-4)
    first = ready(sides)
    for expected in (2, 1):
        before = len(eager.of(Lap))
        again_with(first, call_s=5e-5, ends={Capture: "raised"})
        assert len(eager.of(Lap)[before:]) == expected


def test_a_little_slower_or_quicker_a_candidate_finds_the_rows_that_are_there(sides):
    sides.add("candidate", call_s=5e-5)
    eager = sides.add("eager", call_s=2e-4)
    first = ready(sides)
    made = len(eager.of(Rows))
    for call_s in (4e-5, 7e-5):
        assert again_with(first, call_s=call_s).rows == first.rows
    assert len(eager.of(Rows)) == made


@pytest.mark.parametrize(("again_s", "laps"), [(5e-5, 1), (2e-6, 2)])
def test_a_baseline_with_the_same_rows_as_before_settles_by_one_lap(sides, again_s, laps):
    sides.add("candidate", call_s=5e-5)
    eager = sides.add("eager", call_s=2e-4)
    first = ready(sides)
    before = len(eager.of(Lap))
    again = again_with(first, call_s=again_s)
    # With other rows, memory is allocated and graphs are brought to the device anew.
    assert (again.rows == first.rows) is (laps == 1)
    assert len([lap for lap in eager.of(Lap)[before:] if lap.graphs]) == laps


@pytest.mark.parametrize(("effort", "calls"), [(SMALL, 1), (CALLS, 2)])
def test_what_a_lap_costs_around_its_calls_is_seen_by_a_short_one_after_it(sides, effort, calls):
    child = sides.add("candidate", around_s=3e-4)
    sides.add("eager")
    contest = ready(sides, effort=effort)
    before = len(child.of(Lap))
    contest.run(never)
    assert [len(lap.rows) for lap in child.of(Lap)[before + 1 :: 2]] == [calls] * 2 * len(
        contest.blocks
    )
    assert all(
        each == {"candidate": pytest.approx((AHEAD_S + 3e-4,) * 2)} for each in contest.around
    )
    assert len(contest.around) == len(contest.blocks)


def test_the_first_call_is_told_apart_from_the_next(sides, clock):
    child = sides.add("candidate")
    errand, compiled = child.errand, []

    def compiles(message, **more):
        if isinstance(message, Lap) and not compiled:
            compiled.append(True)
            clock.now += 2.5
        return errand(message, **more)

    child.errand = compiles
    side = ready(sides).sides[0]
    assert side.first_s == pytest.approx(2.5 + AHEAD_S + 1e-4 + 2e-5)
    assert side.second_s == pytest.approx(AHEAD_S + 1e-4 + 2e-5)


def test_warm_calls_are_made_where_they_are_asked_for(sides):
    child = sides.add("candidate")
    contest = ready(sides, effort=replace(CALLS, warm=False))
    child.asked.clear()
    contest.measure_warm()
    assert child.asked == []
    assert contest.sides[0].warm_s is None


def test_warm_calls_share_one_row(sides):
    child = sides.add("candidate")
    contest = ready(sides, effort=CALLS)
    child.asked.clear()
    contest.measure_warm()
    assert {row for lap in child.of(Lap) for row in lap.rows} == {0}
    assert contest.sides[0].warm_s == pytest.approx(child.call_s)


def test_warm_calls_of_a_graph_are_those_of_its_last_group(sides):
    child = sides.add("candidate")
    contest = ready(sides)
    child.asked.clear()
    contest.measure_warm()
    assert {lap.rows for lap in child.of(Lap)} == {(WARM,)}
    assert contest.sides[0].warm_s == pytest.approx(child.call_s)


def test_peak_memory_is_that_of_the_largest_lap_seen(sides):
    sides.add("candidate")
    contest = ready(sides)
    assert contest.sides[0].peak_bytes > 0


def test_the_flush_is_for_devices_only(sides):
    child = sides.add("candidate")
    ready(sides, effort=CALLS, on_gpu=False)
    assert child.of(Stock)[0].flush_bytes == 0
    assert measured_laps(child)


def test_who_was_warmed_up_ahead_compiles_once(sides):
    eager = sides.add("eager")
    ahead = sides.contest()
    ahead.warm_up()
    assert len(eager.of(Stock)) == 1
    assert ahead.sides[0].rows == 0
    sides.add("candidate")
    contest = ready(sides)
    assert len(eager.of(Stock)) == 1
    assert all(side.rows and not side.warmed for side in contest.sides)


def test_how_long_calls_take_is_found_out_when_nobody_compiles_any_more(sides):
    child = sides.add("eager", call_s=3e-5)
    sides.contest().warm_up()
    child.call_s = 2e-5
    assert ready(sides).sides[0].warm_up_s == pytest.approx(2e-5, rel=0.1)


def test_baselines_alone_have_some_laps_each_of_which_the_first_does_not_count(sides):
    children = candidate, eager, others = [sides.add(n) for n in ("candidate", "eager", "compile")]
    contest = ready(sides)
    for child in children:
        child.asked.clear()
    found = contest.alone(["eager"], 3)
    assert {name: len(laps) for name, laps in found.items()} == {"eager": 3}
    assert len(eager.of(Lap)) == 4
    assert not candidate.asked
    # Nobody spends time on those that were not beaten.
    assert not others.asked


def test_nothing_counts_before_a_device_has_settled(sides, clock):
    sides.add("candidate")
    eager = sides.add("eager", call_s=1e-5)
    contest = ready(sides)
    began, errand = clock.now, eager.errand

    def slower_later(message, **more):
        eager.call_s = 1e-5 if clock.now - began < 0.01 else 2e-5
        return errand(message, **more)

    eager.errand = slower_later
    assert contest.alone(["eager"], 3, settle_s=0.02) == {"eager": [pytest.approx(2e-5)] * 3}
