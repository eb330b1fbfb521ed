"""Intervals: closed forms, independent implementations, and coverage by simulation."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from kerneltruth.analysis.intervals import (
    clustered_rate,
    counted,
    effective_size,
    geometric_mean,
    mean_by_cluster,
    mean_share,
    rate,
    rate_of_counts,
    student,
    wilson,
)


@pytest.mark.parametrize(
    ("successes", "trials"), [(0, 30), (1, 1), (3, 8), (30, 30), (72, 100), (500, 880)]
)
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_wilsons_interval_is_scipys_and_statsmodels(successes, trials, confidence):
    found = wilson(successes, trials, confidence=confidence)
    by_scipy = stats.binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    assert found == pytest.approx((by_scipy.low, by_scipy.high), abs=1e-12)
    by_statsmodels = proportion_confint(successes, trials, alpha=1 - confidence, method="wilson")
    assert found == pytest.approx(by_statsmodels, abs=1e-9)


def test_none_right_of_thirty_may_still_be_eleven_percent():
    low, high = wilson(0, 30)
    assert low == 0
    # z^2 / (n + z^2), the closed form at 0.
    assert high == pytest.approx(1.959964**2 / (30 + 1.959964**2), abs=1e-6)


def test_no_trial_has_no_interval_and_no_rate():
    assert wilson(0, 0) == (None, None)
    found = rate(0, 0)
    assert (found.rate, found.low, found.high) == (None, None, None)


@pytest.mark.parametrize(("successes", "trials"), [(2, 1), (-1, 4)])
def test_a_share_beyond_its_bounds_is_refused(successes, trials):
    with pytest.raises(ValueError, match="successes <= trials"):
        wilson(successes, trials)


@pytest.mark.parametrize("p", [0.05, 0.4, 0.9])
def test_wilsons_interval_covers_what_it_claims(p):
    trials = 40
    ends = [wilson(k, trials) for k in range(trials + 1)]
    # Exactly, over all outcomes: no simulation is needed.
    covered = sum(
        stats.binom.pmf(k, trials, p) for k, (low, high) in enumerate(ends) if low <= p <= high
    )
    assert 0.93 <= covered <= 0.98


def answers(rng, tasks, p, alike, sizes):
    """Right answers and answers of each task, whose chances are p on average.

    `alike` is the correlation of answers to one task: 0 unrelated, 1 all the same.
    """
    chance = np.full(tasks, p)
    if alike == 1:
        chance = (rng.random(tasks) < p).astype(float)
    elif alike > 0:
        spread = (1 - alike) / alike
        chance = rng.beta(spread * p, spread * (1 - p), tasks)
    total = rng.choice(sizes, tasks)
    return list(zip(rng.binomial(total, chance).tolist(), total.tolist(), strict=True))


def coverage(p, intervals):
    return sum(low - 1e-12 <= p <= high + 1e-12 for low, high in intervals) / len(intervals)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("alike", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("tasks", "sizes"), [(10, [5]), (30, [1, 2, 10]), (176, [5])])
def test_the_interval_of_a_rate_covers_it_where_tasks_have_several_answers(tasks, sizes, alike, p):
    rng = np.random.default_rng(17)
    found = [rate_of_counts(answers(rng, tasks, p, alike, sizes)) for _ in range(300)]
    # Not less than 95%, but for what 300 rounds and few tasks may be off.
    assert coverage(p, [(f.low, f.high) for f in found]) >= 0.9


def test_answers_taken_as_unrelated_would_claim_far_more_than_they_know():
    rng = np.random.default_rng(5)
    drawn = [answers(rng, 40, 0.5, 0.6, [10]) for _ in range(200)]
    sums = [tuple(map(sum, zip(*d, strict=True))) for d in drawn]
    assert coverage(0.5, [wilson(*s) for s in sums]) < 0.65


def test_a_rate_of_one_answer_to_each_task_has_wilsons_interval():
    assert rate_of_counts([(1, 1)] * 3 + [(0, 1)] * 5) == rate(3, 8)
    assert clustered_rate([("a", True), ("b", False)]) == rate(1, 2)


def test_answers_of_which_those_to_one_task_are_all_alike_count_as_one_each():
    found = rate_of_counts([(10, 10)] * 6 + [(0, 10)] * 4)
    assert (found.numerator, found.denominator) == (60, 100)
    assert (found.low, found.high) == pytest.approx(wilson(6, 10))


@pytest.mark.parametrize("right", [0, 10])
def test_the_interval_has_the_width_of_the_number_of_tasks_where_all_answers_are_alike(right):
    found = rate_of_counts([(right, 10)] * 20)
    assert (found.low, found.high) == pytest.approx(wilson(2 * right, 20))


def test_a_rate_of_a_single_task_is_about_that_task():
    assert rate_of_counts([(3, 10)]) == rate(3, 10)
    assert clustered_rate([]) == rate(0, 0)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 9)).map(lambda c: (min(c), c[1])), min_size=1
    )
)
def test_no_interval_of_a_rate_excludes_it(counts):
    found = rate_of_counts(counts)
    assert 0 <= found.low <= found.rate <= found.high <= 1
    assert found.low < found.high


@settings(deadline=None)
@example([0.0, 0.0, 1e-16])
@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_no_interval_of_a_mean_share_excludes_it_or_has_no_width(shares):
    found = mean_share(shares)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


def test_shares_that_are_all_or_nothing_count_as_trials():
    assert effective_size(np.array([1.0, 0, 0, 1]), np.ones(4)) == pytest.approx(4)
    found = mean_share([1.0, 0.0, 0.0, 1.0, 0.0])
    assert (found.low, found.high) == pytest.approx(wilson(2, 5))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_mean_of_shares_that_are_all_0_or_1_has_the_interval_of_as_many_trials(value):
    found = mean_share([value] * 30)
    assert (found.low, found.high) == pytest.approx(wilson(round(30 * value), 30))


@pytest.mark.parametrize("tasks", [6, 20, 100])
@pytest.mark.parametrize(("a", "b"), [(0.05, 0.2), (1, 1), (8, 0.5), (5, 5)])
def test_the_interval_of_a_mean_of_shares_covers_it(tasks, a, b):
    rng = np.random.default_rng(tasks)
    found = [mean_share(rng.beta(a, b, tasks).tolist()) for _ in range(300)]
    assert coverage(a / (a + b), [(f.low, f.high) for f in found]) >= 0.92


def clustered(rng, clusters, between, within, low=1, high=6):
    """Values of clusters that differ, and the number of the cluster of each."""
    sizes = rng.integers(low, high, clusters)
    means = rng.normal(0, between, clusters)
    values = np.concatenate(
        [m + rng.normal(0, within, n) for m, n in zip(means, sizes, strict=True)]
    )
    return values.tolist(), np.repeat(np.arange(clusters), sizes).tolist()


@pytest.mark.parametrize("clusters", [4, 10, 40])
def test_the_interval_of_a_mean_covers_it_where_values_of_a_cluster_are_alike(clusters):
    rng = np.random.default_rng(7)
    hits = plain = 0
    for _ in range(400):
        values, of = clustered(rng, clusters, between=1.0, within=0.3)
        found = mean_by_cluster(values, of)
        hits += found.low <= 0 <= found.high
        alone = mean_by_cluster(values, range(len(values)))
        plain += alone.low <= 0 <= alone.high
    assert 0.90 <= hits / 400 <= 0.985
    # Taken as independent, the same values claim far more than they know.
    assert plain / 400 < 0.85


@pytest.mark.parametrize("tasks", [3, 10, 60])
def test_the_interval_of_a_geometric_mean_covers_it(tasks):
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(400):
        values = np.exp(rng.normal(math.log(1.5), 0.6, tasks)).tolist()
        found = geometric_mean(values, range(tasks))
        hits += found.low <= 1.5 <= found.high
    assert 0.925 <= hits / 400 <= 0.975


def test_the_geometric_mean_is_that_of_the_closed_form():
    found = geometric_mean([1.0, 2.0, 4.0], ["a", "b", "c"])
    assert found.value == pytest.approx(2.0)
    assert (found.count, found.clusters) == (3, 3)


def test_the_interval_of_unrelated_values_is_students():
    values = np.random.default_rng(0).normal(0, 1, 12)
    found = mean_by_cluster(values.tolist(), range(12))
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_the_interval_of_clustered_values_is_that_of_robust_standard_errors():
    values, of = clustered(np.random.default_rng(2), 15, 1.0, 0.5)
    fit = sm.OLS(values, np.ones(len(values)))
    robust = fit.fit(cov_type="cluster", cov_kwds={"groups": of, "use_correction": False})
    error = robust.bse[0] * math.sqrt(15 / 14)
    found = mean_by_cluster(values, of)
    assert found.value == pytest.approx(np.mean(values))
    assert (found.high - found.value) / student(14) == pytest.approx(error)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 9, 30, 500])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_students_quantile_is_scipys(df, confidence):
    expected = stats.t.ppf((1 + confidence) / 2, df)
    assert student(df, confidence=confidence) == pytest.approx(expected, rel=1e-9)


def test_one_cluster_alone_has_a_mean_and_no_interval():
    found = mean_by_cluster([1.0, 3.0], ["task", "task"])
    assert (found.value, found.low, found.high, found.clusters) == (2.0, None, None, 1)
    found = mean_share([0.5])
    assert (found.value, found.low, found.high) == (0.5, None, None)


def test_values_that_are_all_equal_say_nothing_of_how_far_others_may_differ():
    found = mean_by_cluster([0.1] * 7, range(7))
    assert (found.value, found.low, found.high) == (pytest.approx(0.1), None, None)


def test_nothing_has_neither_mean_nor_interval():
    for found in (mean_by_cluster([], []), mean_share([])):
        assert (found.value, found.low, found.high, found.count) == (None, None, None, 0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans())))
def test_counted_shares_are_clustered_rates(hits):
    share = counted([cluster for cluster, _ in hits])
    assert share(np.array([hit for _, hit in hits], bool)) == clustered_rate(hits)
