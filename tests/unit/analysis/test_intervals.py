"""Intervals: closed forms, independent implementations, and coverage by simulation."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from kerneltruth.analysis.intervals import (
    bootstrap,
    cluster_ratio,
    geometric_mean,
    mean_by_cluster,
    percentiles,
    rate,
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


def clustered(rng, clusters, between, within, low=1, high=6):
    """Values of clusters that differ, and the number of the cluster of each."""
    sizes = rng.integers(low, high, clusters)
    means = rng.normal(0, between, clusters)
    values = np.concatenate(
        [m + rng.normal(0, within, n) for m, n in zip(means, sizes, strict=True)]
    )
    return values.tolist(), np.repeat(np.arange(clusters), sizes).tolist()


def test_the_cluster_bootstrap_covers_the_mean_where_values_of_a_cluster_are_alike():
    rng = np.random.default_rng(7)
    hits = plain = 0
    for seed in range(300):
        values, clusters = clustered(rng, 40, between=1.0, within=0.3)
        found = mean_by_cluster(values, clusters, seed=seed, resamples=300)
        hits += found.low <= 0 <= found.high
        alone = mean_by_cluster(values, range(len(values)), seed=seed, resamples=300)
        plain += alone.low <= 0 <= alone.high
    assert 0.90 <= hits / 300 <= 0.985
    # Taken as independent, the same values claim far more than they know.
    assert plain / 300 < 0.85


def test_the_interval_of_a_geometric_mean_covers_it():
    rng = np.random.default_rng(3)
    hits = 0
    for seed in range(300):
        values = np.exp(rng.normal(math.log(1.5), 0.6, 60)).tolist()
        found = geometric_mean(values, range(60), seed=seed, resamples=300)
        hits += found.low <= 1.5 <= found.high
    assert 0.90 <= hits / 300 <= 0.985


def test_the_geometric_mean_is_that_of_the_closed_form():
    found = geometric_mean([1.0, 2.0, 4.0], ["a", "b", "c"], seed=0)
    assert found.value == pytest.approx(2.0)
    assert (found.count, found.clusters) == (3, 3)


def test_the_bootstrap_of_a_mean_is_as_wide_as_its_standard_error_says():
    rng = np.random.default_rng(0)
    values = rng.normal(0, 1, 400).tolist()
    low, high = cluster_ratio(values, [1.0] * 400, seed=1, resamples=4000)
    error = np.std(values) / 20
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.08)


def test_scipys_bootstrap_gives_the_same_interval():
    rng = np.random.default_rng(4)
    values = rng.exponential(size=80)
    found = cluster_ratio(values.tolist(), [1.0] * 80, seed=1, resamples=5000)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=5000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert found == pytest.approx((theirs.low, theirs.high), rel=0.03)


def test_the_same_seed_gives_the_same_interval_and_another_one_another():
    values, clusters = clustered(np.random.default_rng(0), 12, 1.0, 1.0)
    one, again, other = (mean_by_cluster(values, clusters, seed=s) for s in (5, 5, 6))
    assert one == again
    assert one.low != other.low


def test_one_cluster_alone_has_a_mean_and_no_interval():
    found = mean_by_cluster([1.0, 3.0], ["task", "task"], seed=0)
    assert (found.value, found.low, found.high, found.clusters) == (2.0, None, None, 1)


def test_nothing_has_neither_mean_nor_interval():
    found = mean_by_cluster([], [], seed=0)
    assert (found.value, found.low, found.high, found.count) == (None, None, None, 0)


def test_a_statistic_without_a_value_leaves_its_resamples_out():
    def share(weights):
        return weights[0] / weights[:2].sum() if weights[:2].sum() else None

    low, high = bootstrap(4, share, seed=0, resamples=500)
    assert 0 <= low < high <= 1
    assert bootstrap(4, lambda weights: None, seed=0, resamples=5) == (None, None)
    assert bootstrap(1, share, seed=0) == (None, None)


def test_percentiles_are_central():
    assert percentiles(np.arange(101.0), 0.9) == pytest.approx((5.0, 95.0))
