"""Rows of inputs: how many there are, and which of them are captured together."""

from dataclasses import replace

import pytest

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.rows import (
    GROUPS,
    MOST_ROWS,
    MOST_SAMPLED_GROUPS,
    SPARE,
    WARM,
    count_all,
    count_rows,
    count_sampled_groups,
    groups_of,
    sampled_groups,
    shuffled,
)

EFFORT = Effort(lap_s=0.004, graph_lap_s=0.012, graph_below_s=1e-4, memory_bytes=2**30)


def rng(seed=1):
    return stream(seed, "rows")


@pytest.mark.parametrize(("fastest_s", "rows"), [(1e-3, 4), (2e-4, 16), (2.5e-4, 16)])
def test_rows_suffice_for_a_lap(fastest_s, rows):
    assert count_rows(EFFORT, row_bytes=1, fastest_s=fastest_s) == rows


@pytest.mark.parametrize(("fastest_s", "rows"), [(1.1e-4, 32), (9e-5, 128), (5e-5, 240)])
def test_laps_of_calls_that_are_captured_are_longer(fastest_s, rows):
    assert count_rows(EFFORT, row_bytes=1, fastest_s=fastest_s) == rows


def test_there_is_an_end_to_it():
    assert count_rows(EFFORT, row_bytes=1, fastest_s=0.0) == MOST_ROWS


@pytest.mark.parametrize("memory", [0, 100, *range(1000, 4000, 100), 10_000, 20_000, 1_000_000])
def test_all_rows_fit_into_memory_but_for_the_fewest(memory):
    rows = count_rows(replace(EFFORT, memory_bytes=memory), row_bytes=100, fastest_s=1e-7)
    assert rows == 2 or count_all(rows) * 100 <= memory


def test_where_memory_is_scarce_more_rows_come_with_more_memory():
    found = [
        count_rows(replace(EFFORT, memory_bytes=100 * n), row_bytes=100, fastest_s=1e-7)
        for n in range(200)
    ]
    assert found == sorted(found)
    # Groups that are sampled have a third of the rows at most, and none where nothing is captured.
    assert all(rows > (n - SPARE) * 2 / 3 - GROUPS for n, rows in enumerate(found))
    assert {2, 2 * GROUPS - 1, 2 * GROUPS} <= {*found}


@pytest.mark.parametrize(("size", "groups"), [(2, 4), (31, 4), (43, 3), (64, 2), (96, 2), (128, 1)])
def test_of_small_groups_more_are_sampled(size, groups):
    assert count_sampled_groups(size) == groups <= MOST_SAMPLED_GROUPS
    # The shortest lap has room for all of them.
    assert groups <= GROUPS // 2


def test_groups_have_all_rows_but_the_spare_ones_once():
    groups = groups_of(64, rng())
    assert [len(g) for g in groups] == [8] * (GROUPS + 1 + MOST_SAMPLED_GROUPS)
    assert groups[WARM] == (0,) * 8
    rows = [row for i, g in enumerate(groups) if i != WARM for row in g]
    assert sorted(rows) == [*range(SPARE, count_all(64))]


@pytest.mark.parametrize("rows", [16, 64, 240, 512, 768])
def test_the_last_groups_are_sampled(rows):
    sampled = sampled_groups(rows)
    assert sampled.start == WARM + 1
    assert sampled.stop == len(groups_of(rows, rng()))


def test_which_rows_are_in_a_group_depends_on_the_stream_alone():
    assert groups_of(64, rng(1)) == groups_of(64, rng(1))
    assert groups_of(64, rng(1))[-1] != groups_of(64, rng(2))[-1]


def test_shuffling_keeps_all_and_differs_each_time():
    source = rng()
    once, again = shuffled(50, source), shuffled(50, source)
    assert sorted(once) == sorted(again) == [*range(50)]
    assert once != again
