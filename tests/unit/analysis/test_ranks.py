"""Rank correlations, and complexity against failure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from results_for_tests import result
from scipy import stats

from kerneltruth.analysis.ranks import complexity, mean_ranks, rank_correlation, spearman


@pytest.mark.parametrize("levels", [3, 10, 10_000])
def test_spearmans_correlation_is_scipys_ties_and_all(levels):
    rng = np.random.default_rng(levels)
    x = rng.integers(0, levels, 40).astype(float)
    y = np.round(x / levels * 5 + rng.normal(0, 2, 40))
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert mean_ranks(x) == pytest.approx(stats.rankdata(x))


@pytest.mark.parametrize(("pairs", "normal"), [(8, 0.0), (20, 0.5), (176, 0.5), (60, 0.9)])
def test_the_interval_of_a_rank_correlation_covers_it(pairs, normal):
    rng = np.random.default_rng(pairs)
    # Two normals that correlate by r have a Spearman's of 6/pi asin(r/2).
    true = 6 / np.pi * np.arcsin(normal / 2)
    hits = 0
    for _ in range(400):
        x = rng.normal(size=pairs)
        y = normal * x + np.sqrt(1 - normal**2) * rng.normal(size=pairs)
        found = rank_correlation(x.tolist(), y.tolist())
        hits += found.low <= true <= found.high
    assert 0.92 <= hits / 400 <= 0.985


@pytest.mark.parametrize("pairs", [4, 5, 30, 300])
def test_the_interval_of_a_perfect_order_holds_it_and_has_a_width(pairs):
    rising = [float(n) for n in range(pairs)]
    up, down = rank_correlation(rising, rising), rank_correlation(rising, rising[::-1])
    assert up.low < up.high == up.value == 1.0
    assert (down.low, down.high) == pytest.approx((-1.0, -up.low))


@pytest.mark.parametrize(
    ("x", "y"), [([1, 1, 1, 1], [1, 2, 3, 4]), ([1, 2, 3], [1, 2, 3]), ([], [])]
)
def test_without_spread_or_pairs_there_is_no_correlation(x, y):
    found = rank_correlation(x, y)
    assert (found.value, found.low, found.high, found.pairs) == (None, None, None, len(x))


def test_harder_references_that_fail_more_often_correlate_by_one():
    facts = {f"t{n}": {"lines": float(n), "flops": float(-n)} for n in range(5)}
    results = [
        result(f"t{n}", "fail" if turn < n else "pass", number=turn)
        for n in range(5)
        for turn in range(4)
    ]
    lines, flops = complexity(results, facts)
    assert (lines.proxy, lines.exe.value, lines.exe.pairs) == ("lines", pytest.approx(1.0), 5)
    assert flops.exe.value == pytest.approx(-1.0)
    # Each of them runs.
    assert lines.call.value is None


def test_tasks_without_facts_are_no_pairs():
    facts = {"t0": {"lines": 1.0}}
    (row,) = complexity([result("t0"), result("t1")], facts)
    assert (row.exe.pairs, row.exe.value) == (1, None)
    assert complexity([result("t0")], {}) == ()


PAIRS = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=4, max_size=40)


@settings(deadline=None)
@given(PAIRS)
def test_the_interval_of_a_rank_correlation_holds_it(pairs):
    found = rank_correlation(*zip(*pairs, strict=True))
    assert found.value is None or -1 <= found.low <= found.value <= found.high <= 1


@settings(deadline=None)
@given(PAIRS)
def test_a_rank_correlation_sees_order_alone_and_changes_sign_with_it(pairs):
    x, y = zip(*pairs, strict=True)
    found = rank_correlation(x, y).value
    cubed = rank_correlation([n**3 for n in x], y).value
    turned = rank_correlation([-n for n in x], y).value
    assert cubed == found
    assert found is None or turned == pytest.approx(-found)
