"""What a benchmark shows, and which clock counts; times are scripts."""

import random
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
from timed_children import MANY, finished

from kerneltruth.clock.comparison import candidate_times, comparisons
from kerneltruth.clock.integrity.suspicion import AROUND_S, batches_of, by_events, is_suspect
from kerneltruth.clock.outcome import OutcomeFacts, conclude

CALLS = replace(MANY, graph_below_s=0.0)


@pytest.fixture
def benchmark(clock):
    """A finished benchmark of a candidate and baselines with these scripts."""
    return partial(finished, clock)


def word(comparison):
    return conclude(OutcomeFacts(first=comparison)).outcome


def only(benchmark):
    (found,) = comparisons(benchmark, noise_floor=0.0)
    return found


@pytest.mark.parametrize("effort", [MANY, CALLS])
def test_two_copies_of_a_kernel_tie(benchmark, effort):
    found = only(benchmark({}, {}, effort=effort))
    assert (found.baseline, word(found), found.suspect) == ("eager", "tie", False)
    assert found.ratio.low < 1 < found.ratio.high


def test_a_candidate_of_half_the_time_is_faster(benchmark):
    found = only(benchmark({"call_s": 1e-5}, {"call_s": 2e-5}))
    assert (word(found), found.suspect) == ("faster", False)
    assert found.ratio.estimate == pytest.approx(2, rel=0.01)
    assert found.baseline_s == pytest.approx(2e-5, rel=0.01)


def test_a_candidate_that_takes_longer_is_slower(benchmark):
    assert word(only(benchmark({"call_s": 3e-5}, {"call_s": 2e-5}))) == "slower"


def test_every_baseline_has_its_standing(benchmark):
    found = comparisons(
        benchmark({"call_s": 2e-5}, {"call_s": 3e-5}, {"call_s": 1e-5}), noise_floor=0.0
    )
    assert [(s.baseline, word(s)) for s in found] == [("eager", "faster"), ("compile", "slower")]


def test_the_noise_of_the_machine_turns_a_small_difference_into_a_tie(benchmark):
    made = benchmark({"call_s": 1.9e-5}, {"call_s": 2e-5})
    assert word(comparisons(made, noise_floor=0.0)[0]) == "faster"
    assert word(comparisons(made, noise_floor=0.1)[0]) == "tie"


@pytest.mark.parametrize("whose", [0, 1])
def test_hosts_of_two_processes_differ_by_more_than_devices(benchmark, whose):
    made = benchmark({"call_s": 1e-5}, {"call_s": 1.3e-5}, {"call_s": 1.3e-5})
    assert [word(s) for s in comparisons(made, noise_floor=0.01)] == ["faster", "faster"]
    made.sides[whose].waits = True
    # The candidate's host is a part of all ratios, and a baseline's of its own.
    expected = ["tie", "tie"] if whose == 0 else ["tie", "faster"]
    assert [word(s) for s in comparisons(made, noise_floor=0.01)] == expected


def test_times_are_those_of_a_call(benchmark):
    times = candidate_times(benchmark({"call_s": 2e-5}, {}))
    assert times.low <= times.estimate <= times.high
    assert times.estimate == pytest.approx(2e-5, rel=0.01)


@pytest.mark.parametrize("effort", [MANY, CALLS])
@pytest.mark.parametrize("call_s", [5e-6, 2e-4])
@pytest.mark.parametrize("around_s", [2e-5, 1e-3])
def test_honest_claims_are_not_suspect(benchmark, effort, call_s, around_s):
    made = benchmark(
        {"call_s": call_s, "around_s": around_s}, {"around_s": around_s}, effort=effort
    )
    assert not is_suspect(made)


@pytest.mark.parametrize("effort", [MANY, CALLS])
def test_a_small_overhead_of_the_candidate_alone_is_not_suspect(benchmark, effort):
    """A child whose answers take longer, for whatever reason."""
    made = benchmark({"around_s": 1e-4 + AROUND_S / 2}, {}, effort=effort)
    assert not is_suspect(made)
    assert word(only(made)) == "tie"


@pytest.mark.parametrize("effort", [MANY, CALLS])
@pytest.mark.parametrize("call_s", [2e-5, 2e-4])
@pytest.mark.parametrize("claims", [0.5, 0.1, 0.0])
def test_a_claim_of_less_than_it_took_is_suspect_and_gets_the_judges_times(
    benchmark, effort, call_s, claims
):
    made = benchmark({"call_s": call_s, "claims": claims}, {"call_s": call_s}, effort=effort)
    found = only(made)
    assert found.suspect
    assert word(found) != "faster"
    # What its shortest batches hide is taken for a cost of every batch, within limits.
    assert 0.95 < found.ratio.estimate < 1.2
    assert candidate_times(made).estimate > call_s / 1.2


def test_what_is_suspect_is_never_faster_even_where_the_judge_sees_it_so(benchmark):
    found = only(benchmark({"call_s": 1e-5, "claims": 0.1}, {"call_s": 2e-5}))
    assert found.suspect
    assert found.ratio.low > 1.5
    assert word(found) == "tie"


def test_what_is_suspect_may_be_slower(benchmark):
    found = only(benchmark({"call_s": 4e-5, "claims": 0.1}, {"call_s": 2e-5}))
    assert (found.suspect, word(found)) == (True, "slower")


@pytest.mark.parametrize("host_s", [1e-4, 1.0, 1e9])
def test_to_claim_a_slow_host_does_not_help(benchmark, host_s):
    made = benchmark({"claims": 0.1, "claims_host_s": host_s}, {}, effort=CALLS)
    assert is_suspect(made)


@pytest.mark.parametrize("call_s", [3e-5, 7e-5, 2e-4])
@pytest.mark.parametrize("claims", [0.6, 0.8])
@pytest.mark.parametrize("host_s", [0.97, 1.5, 1e4])
def test_to_claim_a_host_as_slow_as_the_device_does_not_help(benchmark, call_s, claims, host_s):
    """Without memory for many inputs, calls are made one by one for every candidate."""
    cheat = {"call_s": call_s, "claims": claims, "claims_host_s": host_s * call_s}
    made = benchmark(cheat, {"call_s": call_s}, effort=replace(MANY, memory_bytes=128 * 16))
    assert not made.graphs
    assert is_suspect(made)
    assert word(only(made)) != "faster"


@pytest.mark.parametrize("slow", [{"host_s": 2e-4}, {"host_s": 5e-3}, {"waits": True}])
@pytest.mark.parametrize("room", [16, 200])
def test_a_slow_host_makes_no_candidate_suspect(benchmark, slow, room):
    effort = replace(CALLS, memory_bytes=128 * room)
    assert not is_suspect(benchmark({"call_s": 5e-5, **slow}, {"call_s": 5e-5}, effort=effort))


def test_a_long_head_start_of_another_side_makes_no_candidate_suspect(benchmark):
    """Its batches take their time less that head start; a call more takes all of a call."""
    made = benchmark(
        {"call_s": 5e-5, "host_s": 3e-3},
        {"call_s": 5e-5},
        {"call_s": 5e-5, "host_s": 1e-3},
        effort=replace(CALLS, memory_bytes=128 * 16),
    )
    batches = batches_of(made, "candidate")
    assert min(batch.head_start_s for batch in batches) > 0.2 * max(
        batch.wall_s for batch in batches
    )
    assert not is_suspect(made)


def test_to_pretend_a_costly_child_does_not_help(benchmark):
    """Batches of one call take long, so the judge would take all batches to cost as much."""
    made = benchmark({"call_s": 2e-4, "claims": 0.1, "around_s": 0.1}, {"call_s": 2e-4})
    assert is_suspect(made)
    assert word(only(made)) != "faster"


def test_work_after_the_events_is_seen_by_the_judge(benchmark):
    """A side stream or thread that the events do not wait for."""
    made = benchmark({"call_s": 2e-6, "each_s": 2e-5}, {"call_s": 2e-5})
    assert is_suspect(made)
    assert word(only(made)) != "faster"


def test_without_baselines_there_is_a_time_and_no_standing(benchmark):
    made = benchmark({"call_s": 2e-5})
    assert comparisons(made, noise_floor=0.0) == ()
    assert candidate_times(made).estimate == pytest.approx(2e-5, rel=0.01)


def test_without_baselines_a_claim_of_a_tenth_is_suspect_too(benchmark):
    assert is_suspect(benchmark({"claims": 0.1}))


def test_a_benchmark_with_no_blocks_shows_nothing(benchmark):
    made = benchmark({}, {})
    made.blocks.clear()
    assert not is_suspect(made)


def test_blocks_pair_the_batches_of_both_sides(benchmark):
    made = benchmark({"noise": lambda: 1.0, "call_s": 1e-5}, {"noise": lambda: 1.0})
    blocks = by_events(made, "eager")
    assert len(blocks) == 12
    assert blocks[0].candidate_s == pytest.approx((1e-5, 1e-5))
    assert blocks[0].baseline_s == pytest.approx((2e-5, 2e-5))


@pytest.mark.parametrize("effort", [MANY, CALLS])
def test_a_host_that_is_busy_for_a_while_makes_no_candidate_suspect(benchmark, effort):
    busy = benchmark({}, {}, effort=effort)
    for block in busy.blocks:
        for name, batches in block.items():
            block[name] = tuple(replace(batch, wall_s=batch.wall_s + 4e-4) for batch in batches)
    busy.overheads[:] = [
        {name: tuple(seconds + 4e-4 for seconds in pair) for name, pair in each.items()}
        for each in busy.overheads
    ]
    assert not is_suspect(busy)


def test_doubts_about_honest_claims_do_not_outlast_more_blocks_on_a_busy_host(benchmark):
    """Few batches of few calls, as a run has them of large inputs, and answers that come late."""
    honest = {"call_s": 7e-5}
    made = benchmark(honest, honest, effort=replace(MANY, blocks=(24, 24), memory_bytes=128 * 12))
    assert max(batch.calls for block in made.blocks for batch in block["candidate"]) <= 8
    late, suspected = random.Random("busy").gauss, 0
    for _ in range(200):
        busy = cut(made, len(made.blocks))
        busy.blocks = [
            {
                name: tuple(
                    replace(batch, wall_s=batch.wall_s + abs(late(0, 2e-4))) for batch in batches
                )
                for name, batches in block.items()
            }
            for block in made.blocks
        ]
        busy.overheads[:] = [
            {name: tuple(s + abs(late(0, 2e-4)) for s in costs) for name, costs in each.items()}
            for each in made.overheads
        ]
        looks = [cut(busy, blocks) for blocks in (6, 12, 24)]
        suspected += is_suspect(looks[0])
        assert not all(map(is_suspect, looks))
    # That is what it is for.
    assert suspected


def cut(benchmark, blocks):
    """Return the benchmark as it was after a number of blocks."""
    return SimpleNamespace(
        sides=benchmark.sides,
        blocks=benchmark.blocks[:blocks],
        overheads=benchmark.overheads[:blocks],
    )
