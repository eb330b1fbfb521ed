"""Input buffers: how many there are, and which of them are captured together."""

from dataclasses import replace

import pytest

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.buffers import (
    GROUPS,
    MOST_BUFFERS,
    MOST_CHECKED_GROUPS,
    SPARE,
    WARM,
    checked_groups,
    count_all_buffers,
    count_buffers,
    count_checked_groups,
    groups_of,
    shuffled,
)
from kerneltruth.clock.protocol.effort import Effort

EFFORT = Effort(batch_s=0.004, graph_batch_s=0.012, graph_below_s=1e-4, memory_bytes=2**30)


def rng(seed=1):
    return stream(seed, "rows")


@pytest.mark.parametrize(("fastest_s", "buffers"), [(1e-3, 4), (2e-4, 16), (2.5e-4, 16)])
def test_buffers_suffice_for_a_batch(fastest_s, buffers):
    assert count_buffers(EFFORT, buffer_bytes=1, fastest_s=fastest_s) == buffers


@pytest.mark.parametrize(("fastest_s", "buffers"), [(1.1e-4, 32), (9e-5, 128), (5e-5, 240)])
def test_batches_of_captured_calls_are_longer(fastest_s, buffers):
    assert count_buffers(EFFORT, buffer_bytes=1, fastest_s=fastest_s) == buffers


def test_there_is_an_end_to_it():
    assert count_buffers(EFFORT, buffer_bytes=1, fastest_s=0.0) == MOST_BUFFERS


@pytest.mark.parametrize("memory", [0, 100, *range(1000, 4000, 100), 10_000, 20_000, 1_000_000])
def test_all_rows_fit_into_memory_but_for_the_fewest(memory):
    buffers = count_buffers(replace(EFFORT, memory_bytes=memory), buffer_bytes=100, fastest_s=1e-7)
    assert buffers == 2 or count_all_buffers(buffers) * 100 <= memory


def test_where_memory_is_scarce_more_rows_come_with_more_memory():
    found = [
        count_buffers(replace(EFFORT, memory_bytes=100 * n), buffer_bytes=100, fastest_s=1e-7)
        for n in range(200)
    ]
    assert found == sorted(found)
    # Groups that are sampled have a third of the rows at most, and none where nothing is captured.
    assert all(buffers > (n - SPARE) * 2 / 3 - GROUPS for n, buffers in enumerate(found))
    assert {2, 2 * GROUPS - 1, 2 * GROUPS} <= {*found}


@pytest.mark.parametrize(("size", "groups"), [(2, 4), (31, 4), (43, 3), (64, 2), (96, 2), (128, 1)])
def test_of_small_groups_more_are_sampled(size, groups):
    assert count_checked_groups(size) == groups <= MOST_CHECKED_GROUPS
    # The shortest batch has room for all of them.
    assert groups <= GROUPS // 2


def test_groups_have_all_rows_but_the_spare_ones_once():
    groups = groups_of(64, rng())
    assert [len(g) for g in groups] == [8] * (GROUPS + 1 + MOST_CHECKED_GROUPS)
    assert groups[WARM] == (0,) * 8
    buffers = [buffer for i, g in enumerate(groups) if i != WARM for buffer in g]
    assert sorted(buffers) == [*range(SPARE, count_all_buffers(64))]


@pytest.mark.parametrize("buffers", [16, 64, 240, 512, 768])
def test_the_last_groups_are_sampled(buffers):
    spot_checks = checked_groups(buffers)
    assert spot_checks.start == WARM + 1
    assert spot_checks.stop == len(groups_of(buffers, rng()))


def test_which_rows_are_in_a_group_depends_on_the_stream_alone():
    assert groups_of(64, rng(1)) == groups_of(64, rng(1))
    assert groups_of(64, rng(1))[-1] != groups_of(64, rng(2))[-1]


def test_shuffling_keeps_all_and_differs_each_time():
    source = rng()
    once, again = shuffled(50, source), shuffled(50, source)
    assert sorted(once) == sorted(again) == [*range(50)]
    assert once != again
