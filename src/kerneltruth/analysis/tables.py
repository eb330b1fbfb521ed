"""Correctness as a table of counts, and what logistic models of it leave unexplained. Pure.

A table has a row for each level of one factor and a column for each of the other. The deviance is
that of the single answers (-2 log-likelihood), so of tables with the same answers it compares.
Everything works on stacks of tables, (..., rows, columns), since resampling needs thousands.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_ROUNDS = 2000
TOLERANCE = 1e-9


def null_deviance(right: Floats, total: Floats) -> Floats:
    """What is to be explained: the deviance about one probability for all."""
    return _deviance(right.sum((-2, -1)), total.sum((-2, -1)))


def rows_deviance(right: Floats, total: Floats) -> Floats:
    """What a probability for each row leaves."""
    return np.asarray(_deviance(right.sum(-1), total.sum(-1)).sum(-1))


def columns_deviance(right: Floats, total: Floats) -> Floats:
    """What a probability for each column leaves."""
    return np.asarray(_deviance(right.sum(-2), total.sum(-2)).sum(-1))


def cells_deviance(right: Floats, total: Floats) -> Floats:
    """What a probability for each cell leaves: both factors and their interaction."""
    return np.asarray(_deviance(right, total).sum((-2, -1)))


def additive_deviance(right: Floats, total: Floats) -> Floats:
    """What rows and columns leave that add up on the scale of log-odds."""
    fitted = fit_additive(right, total)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = right * np.log(fitted / total)
        terms += (total - right) * np.log((total - fitted) / total)
    return np.asarray(-2 * np.nan_to_num(terms, nan=0.0, posinf=0.0, neginf=0.0).sum((-2, -1)))


def fit_additive(right: Floats, total: Floats) -> Floats:
    """The expected counts of right answers under the additive model.

    By iterative proportional fitting of the equivalent log-linear model: right and wrong answers
    are scaled in turn to the margins of rows, of columns, and to the totals of cells. A row or
    column that is all right or all wrong, where a coefficient would be infinite, takes no care:
    its zeros stay zeros. The likelihood's limit is reached either way.
    """
    wrong = total - right
    fits = [np.where(total > 0, 0.5 * total, 0.0) for _ in range(2)]
    for _ in range(MOST_ROUNDS):
        for axis in (-1, -2):
            for i, seen in enumerate((right, wrong)):
                due = seen.sum(axis, keepdims=True)
                fits[i] *= _share(due, fits[i].sum(axis, keepdims=True))
        scale = _share(total, fits[0] + fits[1])
        fits = [fit * scale for fit in fits]
        rows = np.abs(fits[0].sum(-1) - right.sum(-1)).max(initial=0.0)
        columns = np.abs(fits[0].sum(-2) - right.sum(-2)).max(initial=0.0)
        if max(rows, columns) < TOLERANCE * max(1.0, float(total.sum((-2, -1)).max(initial=1.0))):
            break
    return fits[0]


def _share(due: Floats, there: Floats) -> Floats:
    return np.divide(due, there, out=np.zeros(np.broadcast(due, there).shape), where=there > 0)


def _deviance(right: Floats, total: Floats) -> Floats:
    """-2 log-likelihood of counts about their own shares; 0 of nothing."""
    wrong = total - right
    share = _share(right, total)
    return np.asarray(-2 * (_xlogy(right, share) + _xlogy(wrong, 1 - share)))


def _xlogy(x: Floats, y: Floats) -> Floats:
    """`x log y`, and 0 where x is 0."""
    logs = np.log(y, out=np.zeros_like(y), where=(x > 0) & (y > 0))
    return np.asarray(x * logs)
