"""What chance explains, and how sure the explained share is: exactness, levels and coverage."""

import numpy as np
import pytest

from kerneltruth.analysis.resampling import (
    Counts,
    bootstrap_shares,
    p_value,
    reflected,
    shares,
    shuffled_categories,
    shuffled_methods,
)


def world(rng, tasks, *, categories=6, methods=4, category=0.0, method=0.0, task=1.0, samples=1):
    """Counts of a world whose effects have these standard deviations, and its log-odds."""
    of_category, of_method = rng.normal(0, category, categories), rng.normal(0, method, methods)
    belongs = rng.integers(0, categories, tasks)
    odds = of_category[belongs][:, None] + of_method + rng.normal(0, task, tasks)[:, None]
    right = rng.binomial(samples, 1 / (1 + np.exp(-odds))).astype(float)
    counts = Counts(
        right=right,
        total=np.full(right.shape, float(samples)),
        category=belongs,
        categories=categories,
    )
    return counts, of_category, of_method


def test_shares_grow_with_the_model_and_lie_between_none_and_all():
    counts, *_ = world(np.random.default_rng(0), 60, category=1.0, method=1.0)
    found = shares(*counts.table())
    assert 0 <= found.category <= found.both <= found.interaction <= 1
    assert 0 <= found.method <= found.both


def test_tables_of_weights_are_those_of_repeated_tasks():
    counts, *_ = world(np.random.default_rng(1), 12)
    weights = np.random.default_rng(2).integers(0, 3, (5, 12)).astype(float)
    right, total = counts.table(weights)
    for drawn, table, size in zip(weights, right, total, strict=True):
        rows = np.repeat(np.arange(12), drawn.astype(int))
        again = Counts(
            right=counts.right[rows],
            total=counts.total[rows],
            category=counts.category[rows],
            categories=counts.categories,
        ).table()
        assert table == pytest.approx(again[0])
        assert size == pytest.approx(again[1])


def test_dealing_categories_out_anew_keeps_what_methods_explain():
    counts, *_ = world(np.random.default_rng(3), 40, method=1.0)
    dealt = shuffled_categories(counts, seed=0, permutations=20)
    assert dealt.method == pytest.approx(float(shares(*counts.table()).method))
    assert len(set(dealt.category.round(9))) > 10


def test_dealing_answers_out_anew_keeps_what_categories_explain():
    counts, *_ = world(np.random.default_rng(4), 40, category=1.0, samples=3)
    dealt = shuffled_methods(counts, seed=0, permutations=20)
    assert dealt.category == pytest.approx(float(shares(*counts.table()).category))
    assert len(set(dealt.method.round(9))) > 10


def test_two_tasks_of_two_methods_have_the_exact_distribution():
    # One right answer each: both go to the same method in half of all deals.
    counts = Counts(
        right=np.array([[1.0, 0.0], [1.0, 0.0]]),
        total=np.ones((2, 2)),
        category=np.array([0, 0]),
        categories=1,
    )
    dealt = shuffled_methods(counts, seed=1, permutations=4000).method
    assert set(dealt.round(9)) == {0.0, 1.0}
    assert dealt.mean() == pytest.approx(0.5, abs=0.03)


def test_the_p_value_counts_the_observation_as_one_draw():
    assert p_value(2.0, np.array([0.0, 1.0, 2.0])) == pytest.approx(2 / 4)
    assert p_value(9.0, np.zeros(999)) == pytest.approx(1 / 1000)
    assert p_value(0.5, np.array([np.nan, 0.0])) == pytest.approx(1 / 2)


def test_the_same_seed_gives_the_same_resamples():
    counts, *_ = world(np.random.default_rng(5), 30)
    one, again = (bootstrap_shares(counts, seed=7, resamples=20) for _ in range(2))
    assert one.both == pytest.approx(again.both)


def levels(rounds, statistic, **effects):
    """How often p <= 0.1, of worlds in which the null hypothesis holds."""
    rng = np.random.default_rng(11)
    low = 0
    for seed in range(rounds):
        counts, *_ = world(rng, 48, **effects)
        low += statistic(counts, seed) <= 0.1
    return low / rounds


def by_category(counts, seed):
    dealt = shuffled_categories(counts, seed=seed, permutations=99)
    return p_value(float(shares(*counts.table()).category), dealt.category)


def by_method(counts, seed):
    dealt = shuffled_methods(counts, seed=seed, permutations=99)
    return p_value(float(shares(*counts.table()).method), dealt.method)


def by_interaction(counts, seed):
    seen, dealt = shares(*counts.table()), shuffled_methods(counts, seed=seed, permutations=99)
    return p_value(float(seen.interaction - seen.both), dealt.interaction - dealt.both)


def test_categories_that_do_nothing_are_seldom_found_even_where_tasks_differ_much():
    assert levels(120, by_category, task=2.0, method=0.7) <= 0.18


def test_methods_that_do_nothing_are_seldom_found():
    assert levels(120, by_method, task=1.0, category=1.0) <= 0.18


def test_an_interaction_that_is_not_there_is_seldom_found_beside_strong_main_effects():
    assert levels(120, by_interaction, task=1.0, category=1.5, method=0.8) <= 0.18


def test_effects_that_are_there_are_found():
    rng = np.random.default_rng(12)
    found = 0
    for seed in range(20):
        counts, *_ = world(rng, 90, category=2.0, method=2.0, task=0.5)
        found += by_category(counts, seed) <= 0.05 and by_method(counts, seed) <= 0.05
    assert found >= 17


def true_shares(of_category, of_method, task):
    """What the models explain of endlessly many tasks."""
    spread = np.random.default_rng(0).normal(0, task, 3000)
    odds = of_category[:, None, None] + of_method[None, :, None] + spread
    p = (1 / (1 + np.exp(-odds))).mean(-1)
    return shares(p * 1e6, np.full(p.shape, 1e6))


def test_the_reflected_interval_covers_what_is_true_of_endlessly_many_tasks():
    rng = np.random.default_rng(13)
    hits = {"category": 0, "method": 0, "both": 0}
    percentile = 0
    rounds = 120
    for seed in range(rounds):
        counts, of_category, of_method = world(rng, 120, category=0.8, method=0.6)
        true = true_shares(of_category, of_method, 1.0)
        seen, drawn = shares(*counts.table()), bootstrap_shares(counts, seed=seed, resamples=200)
        for name in hits:
            low, high = reflected(float(getattr(seen, name)), getattr(drawn, name))
            hits[name] += low <= float(getattr(true, name)) <= high
        low, high = np.quantile(drawn.both, [0.025, 0.975])
        percentile += low <= true.both <= high
    assert {name: n / rounds for name, n in hits.items() if n / rounds < 0.87} == {}
    # Percentiles put the bias in twice: that is why the interval is reflected.
    assert percentile / rounds < min(hits.values()) / rounds


def test_an_interval_of_shares_lies_on_the_other_side_and_not_below_nothing():
    assert reflected(0.03, np.full(50, 0.05)) == pytest.approx((0.01, 0.01))
    assert reflected(0.01, np.full(50, 0.05)) == (0.0, 0.0)
    assert reflected(0.5, np.array([np.nan])) is None
