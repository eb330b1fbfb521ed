"""Exact quantiles of the few distributions that the clock's intervals need.

SciPy has no public quantiles of the signed-rank statistic, so these are counted here.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

import numpy as np
from scipy import special

# Up to here the distribution of the signed-rank statistic is counted out; beyond, the normal
# approximation errs by less than one place in the order.
_COUNTED = 64


def normal(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)


@cache
def signed_rank_place(n: int, alpha: float) -> int:
    """Return which Walsh average, counted from either end from 1, ends the signed-rank interval.

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
    """Return which order statistic, counted from either end from 1, ends the median's interval.

    The interval between the k-th smallest and k-th largest of n values misses the median with
    probability 2 P(B < k), B binomial over n coin tosses, whatever the distribution. 0 means that
    n values are too few.
    """
    below = special.bdtr(np.arange(n), n, 0.5)
    return int(np.searchsorted(below, alpha / 2, side="right"))


@cache
def student_t(alpha: float, freedom: int) -> float:
    """Return the t that |T| of `freedom` degrees exceeds with probability alpha."""
    return float(special.stdtrit(freedom, 1 - alpha / 2))
