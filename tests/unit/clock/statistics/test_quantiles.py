"""The clock's quantiles against SciPy's."""

import itertools

import pytest
from scipy import stats

from kerneltruth.clock.statistics.quantiles import (
    median_place,
    normal,
    signed_rank_place,
    student_t,
)


@pytest.mark.parametrize("p", [0.001, 0.025, 0.5, 0.975])
def test_the_normal_quantile_is_scipys(p):
    assert normal(p) == pytest.approx(stats.norm.ppf(p), abs=1e-9)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8, 17, 18, 60])
@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.03125, 0.001])
def test_students_t_is_scipys(freedom, alpha):
    expected = stats.t.ppf(1 - alpha / 2, freedom)
    assert student_t(alpha, freedom) == pytest.approx(expected, rel=1e-9)


def test_the_signed_rank_place_counts_every_sign_pattern():
    sums = [sum(r for r, s in enumerate(signs, 1) if s) for signs in _patterns(8)]
    # Wilcoxon's table: n = 8, two-sided 5%, the statistic 3 is rejected and 4 is not.
    assert sum(t < 4 for t in sums) / 256 <= 0.025 < sum(t < 5 for t in sums) / 256
    assert signed_rank_place(8, 0.05) == 4


def _patterns(n):
    return itertools.product([False, True], repeat=n)


@pytest.mark.parametrize(("n", "place"), [(5, 0), (6, 1), (10, 9), (20, 53), (40, 265), (50, 435)])
def test_the_signed_rank_place_is_one_above_the_published_critical_value(n, place):
    # Critical values of the two-sided test at 5%: none, 0, 8, 52, 264, 434.
    assert signed_rank_place(n, 0.05) == place


def test_six_values_just_suffice_for_one_in_32():
    assert signed_rank_place(6, 1 / 32) == 1
    assert signed_rank_place(6, 1 / 32 - 1e-9) == 0


def test_the_normal_approximation_continues_the_counts():
    counted = signed_rank_place(64, 0.05)
    approximated = signed_rank_place(65, 0.05)
    assert 0 < approximated - counted < 30


@pytest.mark.parametrize("n", [1, 5, 6, 9, 20, 101, 1000])
def test_the_median_place_is_the_binomials(n):
    k = median_place(n, 0.05)
    assert 2 * stats.binom.cdf(k - 1, n, 0.5) <= 0.05 < 2 * stats.binom.cdf(k, n, 0.5)
