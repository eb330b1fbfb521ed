"""Exact quantiles of the few distributions that the clock's intervals need.

SciPy has them all; it is a test dependency, and the tests compare.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

import numpy as np

# Up to here the distribution of the signed-rank statistic is counted out; beyond, the normal
# approximation errs by less than one place in the order.
_COUNTED = 64


def normal(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)


@cache
def signed_rank_place(n: int, alpha: float) -> int:
    """Which Walsh average, counted from either end from 1, ends the signed-rank interval.

    Wilcoxon's signed-rank statistic of n values has 2**n equally likely sign patterns if each value
    is as likely to lie above the centre as below. The interval between the k-th smallest and the
    k-th largest of the n(n+1)/2 Walsh averages misses the centre with probability 2 P(T < k), here
    kept within alpha. 0 means that n values are too few for this alpha.
    """
    most = n * (n + 1) // 2
    if n > _COUNTED:
        spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return math.floor(most / 2 + normal(alpha / 2) * spread)
    ways = np.zeros(most + 1)
    ways[0] = 1
    for rank in range(1, n + 1):
        ways[rank:] += ways[:-rank].copy()
    below = np.cumsum(ways) / 2.0**n
    return int(np.searchsorted(below, alpha / 2, side="right"))


@cache
def median_place(n: int, alpha: float) -> int:
    """Which order statistic, counted from either end from 1, ends the interval of the median.

    The interval between the k-th smallest and k-th largest of n values misses the median with
    probability 2 P(B < k), B binomial over n coin tosses, whatever the distribution. 0 means that
    n values are too few.
    """
    below, k = 0.0, 0
    while k < n:
        below += math.exp(
            math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        )
        if below > alpha / 2:
            break
        k += 1
    return k


@cache
def student_t(alpha: float, freedom: int) -> float:
    """The t that |T| of `freedom` degrees exceeds with probability alpha, by bisection."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < 1 - alpha:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < 1 - alpha else (low, middle)
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """P(|T| <= t), in closed form: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for j in range(1 + odd, freedom, 2):
        total += term
        term *= math.cos(angle) ** 2 * (j / (j + 1))
    total *= math.sin(angle)
    return (2 / math.pi) * (angle + total) if odd else total
