"""Which calls of a batch are sampled, and which elements are kept."""

from itertools import pairwise

import pytest

from kerneltruth.cases.philox import stream
from kerneltruth.clock.integrity.spot_checks import (
    ENOUGH,
    FEW,
    MOST_CALLS,
    SPOTS,
    batches_to_check,
    sources_of,
    spot_check_of,
)

ROWS = tuple(range(100, 140))


def spot_check(*groups, elements=(10,), sources=2, seed=1):
    groups = groups or (ROWS,)
    return spot_check_of(
        groups, elements=elements, sources=sources, slot=3, rng=stream(seed, "sampling")
    )


@pytest.mark.parametrize(
    ("calls", "spot_checks"),
    [(1, 1), (2, 2), (FEW - 1, FEW - 1), (FEW, FEW // 2), (40, 20), (768, 32)],
)
def test_of_few_calls_all_are_sampled_and_of_many_some(calls, spot_checks):
    assert len(spot_check(range(calls)).buffers) == spot_checks <= MOST_CALLS


def test_some_calls_of_each_group_are_sampled():
    found = spot_check(ROWS, range(50), (1000, 1001)).buffers
    assert [buffer in ROWS for buffer in found[:20]] == [True] * 20
    assert found[-2:] == (1000, 1001)
    assert len(found) == 20 + 25 + 2


@pytest.mark.parametrize(
    ("spot_checks", "batches"), [(64, 2), (16, 2), (15, 3), (8, 4), (7, 5), (4, 8), (2, 8), (1, 8)]
)
def test_the_fewer_calls_of_a_batch_are_checked_the_more_batches_are(spot_checks, batches):
    found = batches_to_check(2, spot_checks, blocks=8, rng=stream(1, "laps"))
    assert len(found) == batches
    assert all(0 <= index < 8 for index in found)
    assert batches * spot_checks >= 2 * ENOUGH or batches == 8


def test_zero_batches_to_check_give_none():
    assert batches_to_check(0, 4, blocks=8, rng=stream(1, "laps")) == []


def test_calls_are_listed_in_the_order_in_which_they_are_made():
    mixed = ROWS[::2] + ROWS[1::2]
    found = spot_check(mixed).buffers
    assert len({*found}) == len(found)
    assert [*found] == sorted(found, key=mixed.index)


def test_neighbours_get_different_contents():
    sources = spot_check().sources
    assert {*sources} == {0, 1}
    assert all(a != b for a, b in pairwise(sources))


def test_which_calls_and_elements_cannot_be_foreseen():
    found = [spot_check(elements=(10**6,), seed=seed) for seed in range(4)]
    assert len({f.buffers for f in found}) == len({f.spots for f in found}) == 4


def test_of_small_outputs_all_elements_are_kept_and_of_large_ones_some():
    found = spot_check(elements=(5, 0, SPOTS, 10**6))
    assert found.spots[:3] == (tuple(range(5)), (), tuple(range(SPOTS)))
    assert len(found.spots[3]) == SPOTS
    assert 0 <= min(found.spots[3]) < 10**4
    assert 10**6 - 10**4 < max(found.spots[3]) < 10**6


def test_the_slot_is_named():
    assert spot_check().slot == 3


@pytest.mark.parametrize(("known", "sources"), [(1, 1), (2, 2), (9, 4)])
def test_known_contents_wait_in_spare_rows(known, sources):
    assert sources_of(range(known)) == sources
