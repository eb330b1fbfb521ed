"""Firth's logistic regression, whose estimates stay finite. Pure.

Where a group is all right or all wrong, the most likely coefficient is infinite. Penalizing the
likelihood by the square root of the information's determinant (Firth, 1993) removes that, and the
bias of first order; for a single group it is the share (right + 1/2) / (total + 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_STEPS = 200
LONGEST_STEP = 2.0
TOLERANCE = 1e-8


def firth_probabilities(design: Floats, right: Floats, total: Floats) -> Floats | None:
    """Fit the probability of each group; None if the steps do not converge.

    The design has a row for each group, and full column rank.
    """
    beta = np.zeros(design.shape[1])
    for _ in range(MOST_STEPS):
        p = _expit(design @ beta)
        weights = total * p * (1 - p)
        information = (design.T * weights) @ design
        try:
            inverse = np.linalg.inv(information)
        except np.linalg.LinAlgError:
            return None
        leverage = weights * np.einsum("ij,jk,ik->i", design, inverse, design)
        # Half an answer more of either kind, divided by leverage: they count in the curvature
        # too; without them the steps of small groups never settle.
        score = design.T @ (right - total * p + leverage * (0.5 - p))
        curvature = (design.T * ((total + leverage) * p * (1 - p))) @ design
        step = np.linalg.solve(curvature, score)
        longest = float(np.abs(step).max(initial=0.0))
        beta = beta + step * min(1.0, LONGEST_STEP / longest) if longest else beta
        if longest < TOLERANCE:
            return _expit(design @ beta)
    return None


def _expit(eta: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(eta, -500, 500))))
