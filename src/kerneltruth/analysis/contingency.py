"""Tables of right answers, and the deviance of logistic models of them. Pure.

A table has a row for each level of one factor and a column for each of the other. The deviance is
that of the single answers (-2 log-likelihood), so it compares between tables of the same answers.
All functions take stacks of tables, (..., rows, columns), since resampling needs thousands.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_STEPS = 60
MOST_HALVINGS = 12
TOLERANCE = 1e-10
RIDGE = 1e-9
# Log-odds beyond which a probability is 0 or 1 to all that doubles can tell of a deviance.
FARTHEST = 40.0


def null_deviance(right: Floats, total: Floats) -> Floats:
    """Return the null deviance: that of one probability for all."""
    return _deviance(right.sum((-2, -1)), total.sum((-2, -1)))


def rows_deviance(right: Floats, total: Floats) -> Floats:
    """Return the deviance of a probability for each row."""
    return np.asarray(_deviance(right.sum(-1), total.sum(-1)).sum(-1))


def columns_deviance(right: Floats, total: Floats) -> Floats:
    """Return the deviance of a probability for each column."""
    return np.asarray(_deviance(right.sum(-2), total.sum(-2)).sum(-1))


def cells_deviance(right: Floats, total: Floats) -> Floats:
    """Return the deviance of a probability for each cell: factors with interaction."""
    return np.asarray(_deviance(right, total).sum((-2, -1)))


def additive_deviance(right: Floats, total: Floats) -> Floats:
    """Return the deviance of the additive model on the scale of log-odds."""
    return _deviance_at(additive_odds(right, total), right, total)


def additive_odds(right: Floats, total: Floats) -> Floats:
    """Fit the log-odds of each cell under the additive model, by damped Newton steps.

    A row or column that is all right or all wrong drives its log-odds towards infinity; the
    deviance converges all the same, and the steps end where it does. A table that has converged
    takes no part in further steps.
    """
    shape = np.broadcast_shapes(right.shape, total.shape)
    k = np.broadcast_to(right, shape).reshape(-1, *shape[-2:])
    n = np.broadcast_to(total, shape).reshape(-1, *shape[-2:])
    odds = _first_guess(k, n)
    deviance = _deviance_at(odds, k, n)
    active = np.arange(len(k))
    for _ in range(MOST_STEPS):
        if not len(active):
            break
        step = _newton_step(odds[active], k[active], n[active])
        better, less = _line_search(odds[active], deviance[active], step, k[active], n[active])
        gained = deviance[active] - less
        odds[active], deviance[active] = better, less
        active = active[gained > TOLERANCE * (1 + less)]
    return odds.reshape(shape)


def _first_guess(k: Floats, n: Floats) -> Floats:
    """Start from the shares of rows and columns, each with half an answer more."""
    rows = _log_odds(k.sum(2), n.sum(2))[:, :, None]
    columns = _log_odds(k.sum(1), n.sum(1))[:, None, :]
    return np.asarray(rows + columns - _log_odds(k.sum((1, 2)), n.sum((1, 2)))[:, None, None])


def _log_odds(k: Floats, n: Floats) -> Floats:
    return np.asarray(np.log((k + 0.5) / (n - k + 0.5)))


def _newton_step(odds: Floats, k: Floats, n: Floats) -> Floats:
    p = 1 / (1 + np.exp(-odds))
    weight, slope = n * p * (1 - p), k - n * p
    rows, columns = k.shape[1:]
    curvature = np.zeros((len(k), rows + columns, rows + columns))
    at = np.arange(rows + columns)
    curvature[:, :rows, rows:] = weight
    curvature[:, rows:, :rows] = weight.transpose(0, 2, 1)
    # The ridge fixes the offset, which differences of rows and columns leave open.
    curvature[:, at, at] = np.concatenate([weight.sum(2), weight.sum(1)], axis=1) + RIDGE
    gradient = np.concatenate([slope.sum(2), slope.sum(1)], axis=1)
    change = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
    return np.asarray(change[:, :rows, None] + change[:, None, rows:])


def _line_search(
    odds: Floats, deviance: Floats, step: Floats, k: Floats, n: Floats
) -> tuple[Floats, Floats]:
    """Halve a step until it makes nothing worse; return log-odds and deviance."""
    length = np.ones(len(odds))
    for _ in range(MOST_HALVINGS):
        moved = np.clip(odds + length[:, None, None] * step, -FARTHEST, FARTHEST)
        less = _deviance_at(moved, k, n)
        worse = ~(less <= deviance)
        if not worse.any():
            return moved, less
        length = np.where(worse, length / 2, length)
    kept = worse[:, None, None]
    return np.where(kept, odds, moved), np.where(worse, deviance, less)


def _deviance_at(odds: Floats, k: Floats, n: Floats) -> Floats:
    return np.asarray(2 * (n * np.logaddexp(0, odds) - k * odds).sum((-2, -1)))


def _deviance(right: Floats, total: Floats) -> Floats:
    """Return -2 log-likelihood of counts at their own shares; 0 without counts."""
    wrong = total - right
    share = np.divide(right, total, out=np.zeros(np.shape(total)), where=np.asarray(total) > 0)
    return np.asarray(-2 * (_xlogy(right, share) + _xlogy(wrong, 1 - share)))


def _xlogy(x: Floats, y: Floats) -> Floats:
    """Return `x log y`, and 0 where x is 0."""
    logs = np.log(y, out=np.zeros_like(y), where=(x > 0) & (y > 0))
    return np.asarray(x * logs)
