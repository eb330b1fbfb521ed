"""What chance explains, and how sure the explained share is: exactness, levels and coverage."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltruth.analysis.resampling import (
    Counts,
    balanced,
    bootstrap_shares,
    debiased,
    interaction_p,
    p_value,
    shares,
    shuffled_categories,
    shuffled_methods,
)

pytestmark = pytest.mark.sweep


def world(
    rng, tasks, *, categories=6, methods=4, category=0.0, method=0.0, task=1.0, cell=0.0, samples=1
):
    """Counts of a world whose effects have these standard deviations, and its log-odds.

    `cell` is of how well a method suits a task, beyond both: it makes the answers of a method to a
    task alike. `samples` may be a number for each method.
    """
    of_category, of_method = rng.normal(0, category, categories), rng.normal(0, method, methods)
    belongs = rng.integers(0, categories, tasks)
    odds = of_category[belongs][:, None] + of_method + rng.normal(0, task, tasks)[:, None]
    odds += rng.normal(0, cell, odds.shape)
    total = np.broadcast_to(np.asarray(samples), odds.shape)
    right = rng.binomial(total, 1 / (1 + np.exp(-odds))).astype(float)
    counts = Counts(right=right, total=total.astype(float), category=belongs, categories=categories)
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
    permuted = shuffled_categories(counts, seed=0, permutations=20)
    assert permuted.method == pytest.approx(float(shares(*counts.table()).method))
    assert len(set(permuted.category.round(9))) > 10


def test_dealing_methods_out_anew_keeps_what_categories_explain():
    counts, *_ = world(np.random.default_rng(4), 40, category=1.0, samples=3)
    permuted = shuffled_methods(counts, seed=0, permutations=20)
    assert permuted.category == pytest.approx(float(shares(*counts.table()).category))
    assert len(set(permuted.method.round(9))) > 10


def test_two_tasks_of_two_methods_have_the_exact_distribution():
    # One right answer each: both go to the same method in half of all deals.
    counts = Counts(
        right=np.array([[1.0, 0.0], [1.0, 0.0]]),
        total=np.ones((2, 2)),
        category=np.array([0, 0]),
        categories=1,
    )
    permuted = shuffled_methods(counts, seed=1, permutations=4000).method
    assert set(permuted.round(9)) == {0.0, 1.0}
    assert permuted.mean() == pytest.approx(0.5, abs=0.03)


def test_the_p_value_counts_the_observation_as_one_draw():
    assert p_value(2.0, np.array([0.0, 1.0, 2.0])) == pytest.approx(2 / 4)
    assert p_value(9.0, np.zeros(999)) == pytest.approx(1 / 1000)
    assert p_value(0.5, np.array([np.nan, 0.0])) == pytest.approx(1 / 2)


def test_the_same_seed_gives_the_same_resamples():
    counts, *_ = world(np.random.default_rng(5), 30)
    one, again = (bootstrap_shares(counts, seed=7, resamples=20) for _ in range(2))
    assert one.both == pytest.approx(again.both)


def test_all_answers_of_a_method_to_a_task_stay_together():
    # Ten right answers of one method and ten wrong ones of another, on one task.
    counts = Counts(
        right=np.array([[10.0, 0.0]]),
        total=np.full((1, 2), 10.0),
        category=np.array([0]),
        categories=1,
    )
    assert shuffled_methods(counts, seed=0, permutations=50).method == pytest.approx(1.0)


def test_a_task_that_a_method_has_no_answer_to_stays_so():
    counts, *_ = world(np.random.default_rng(6), 30, samples=[0, 1, 5, 10])
    even = balanced(counts)
    assert even.total[:, 0].tolist() == [0.0] * 30
    assert even.total.sum(1) == pytest.approx(counts.total.sum(1))
    assert even.right[:, 2] / even.total[:, 2] == pytest.approx(counts.right[:, 2] / 5)
    permuted = shuffled_methods(counts, seed=0, permutations=20)
    # What is permuted has answers of three methods: the fourth explains nothing.
    assert np.isfinite(permuted.method).all()


def by_category(counts, seed):
    permuted = shuffled_categories(counts, seed=seed, permutations=39)
    return p_value(float(shares(*counts.table()).category), permuted.category)


def by_method(counts, seed):
    permuted = shuffled_methods(counts, seed=seed, permutations=39)
    return p_value(float(shares(*balanced(counts).table()).method), permuted.method)


def by_interaction(counts, seed):
    return interaction_p(counts, seed=seed, permutations=39)


def size(statistic, *, rounds=150, level=0.1, **effects):
    """How often p <= 10%, of worlds with these effects."""
    rng = np.random.default_rng(11)
    worlds = (world(rng, 60, **effects)[0] for _ in range(rounds))
    return sum(statistic(counts, seed) <= level for seed, counts in enumerate(worlds)) / rounds


SAMPLES = (1, 5, [1, 1, 5, 10], [0, 2, 5, 5])


@pytest.mark.slow
@pytest.mark.parametrize("samples", SAMPLES, ids=str)
def test_categories_that_do_nothing_are_found_as_seldom_as_the_level_says(samples):
    assert 0.04 <= size(by_category, task=2.0, method=0.7, cell=1.0, samples=samples) <= 0.16


@pytest.mark.slow
@pytest.mark.parametrize("samples", SAMPLES, ids=str)
def test_methods_that_do_nothing_are_found_as_seldom_as_the_level_says(samples):
    assert 0.04 <= size(by_method, category=1.0, cell=1.0, samples=samples) <= 0.16


@pytest.mark.parametrize("samples", SAMPLES, ids=str)
def test_an_interaction_that_is_not_there_is_found_as_seldom_as_the_level_says(samples):
    found = size(by_interaction, category=1.2, method=1.0, cell=1.0, samples=samples)
    assert 0.03 <= found <= 0.16


def test_methods_that_differ_are_found():
    assert size(by_method, rounds=40, method=0.8, cell=1.0, samples=5) >= 0.8


def test_an_interaction_that_is_there_is_found_beside_strong_main_effects():
    rng = np.random.default_rng(21)
    found = 0
    for seed in range(40):
        counts, *_ = world(rng, 90, category=1.0, method=1.0, task=0.5, cell=0.5, samples=5)
        # Which method suits which category.
        suits = rng.normal(0, 1.2, (6, 4))[counts.category]
        p = 1 / (1 + np.exp(-suits - rng.normal(0, 1, 4)))
        counts = replace(counts, right=rng.binomial(5, p).astype(float))
        found += by_interaction(counts, seed) <= 0.05
    assert found >= 32


def test_effects_that_are_there_are_found():
    rng = np.random.default_rng(12)
    found = 0
    for seed in range(20):
        counts, *_ = world(rng, 90, category=2.0, method=2.0, task=0.5)
        found += by_category(counts, seed) <= 0.05 and by_method(counts, seed) <= 0.05
    assert found >= 17


def true_shares(of_category, of_method, task):
    """What the models explain of endlessly many tasks."""
    spread = np.random.default_rng(0).normal(0, task, 1000)
    odds = of_category[:, None, None] + of_method[None, :, None] + spread
    p = (1 / (1 + np.exp(-odds))).mean(-1)
    return shares(p * 1e6, np.full(p.shape, 1e6))


@pytest.mark.parametrize("samples", [1, 5])
def test_the_debiased_interval_covers_what_is_true_of_endlessly_many_tasks(samples):
    rng = np.random.default_rng(13)
    hits = {"category": 0, "method": 0, "both": 0}
    percentile = 0
    rounds = 60
    for seed in range(rounds):
        counts, of_category, of_method = world(rng, 120, category=0.8, method=0.6, samples=samples)
        true = true_shares(of_category, of_method, 1.0)
        seen, drawn = shares(*counts.table()), bootstrap_shares(counts, seed=seed, resamples=200)
        for name in hits:
            low, high = debiased(float(getattr(seen, name)), getattr(drawn, name))
            hits[name] += low <= float(getattr(true, name)) <= high
        low, high = np.quantile(drawn.both, [0.025, 0.975])
        percentile += low <= true.both <= high
    assert {name: n / rounds for name, n in hits.items() if n / rounds < 0.88} == {}
    # Percentiles have the bias twice.
    assert percentile < hits["both"]


def test_an_interval_of_shares_is_less_twice_the_bias_and_not_below_nothing():
    assert debiased(0.03, np.full(50, 0.04)) == pytest.approx((0.02, 0.02))
    assert debiased(0.01, np.full(50, 0.05)) == (0.0, 0.0)
    assert debiased(0.5, np.array([np.nan])) is None
