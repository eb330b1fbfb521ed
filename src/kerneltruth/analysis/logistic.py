"""Logistic models of a table of answers, fitted by statsmodels.

statsmodels is an extra: without it there is one line that says how to add it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltruth.errors import KernelTruthError

Floats = NDArray[np.float64]

MOST_STEPS = 200
LONGEST_STEP = 2.0
TOLERANCE = 1e-8
HINT = "needs statsmodels: pip install 'kerneltruth[study]'"


class MissingPackage(KernelTruthError):
    """A package that the statistic needs is not installed; says how to install it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A fitted model.

    Attributes:
        df: coefficients beyond the intercept.
        deviance: -2 log-likelihood of the single answers.
        separated: whether a group is all right or all wrong, so that some coefficient is infinite.
        penalized: the share of the null deviance that Firth's estimates explain, if so.
    """

    df: int
    deviance: float
    answers: int
    separated: bool
    penalized: float | None

    def p_against(self, smaller: Fit) -> float:
        """P-value of the likelihood-ratio test against a model within this one."""
        from scipy.stats import chi2

        drop = max(0.0, smaller.deviance - self.deviance)
        return float(chi2.sf(drop, self.df - smaller.df))


def fit_all(right: Floats, total: Floats) -> dict[str, Fit]:
    """Fit the models of a table (categories, methods); return those with a factor.

    Raises:
        MissingPackage: statsmodels is not installed.
    """
    try:
        from statsmodels.genmod import families
        from statsmodels.genmod.generalized_linear_model import GLM
    except ImportError as error:
        raise MissingPackage(HINT) from error
    rows, columns = right.shape
    used = total.ravel() > 0
    k, n = right.ravel()[used], total.ravel()[used]
    category = np.repeat(np.eye(rows)[:, 1:], columns, axis=0)[used]
    method = np.tile(np.eye(columns)[:, 1:], (rows, 1))[used]
    one = np.ones((len(k), 1))
    designs = {"null": one}
    if rows > 1:
        designs["category"] = np.hstack([one, category])
    if columns > 1:
        designs["method"] = np.hstack([one, method])
    if rows > 1 and columns > 1:
        designs["category + method"] = _independent(np.hstack([one, category, method]))
        designs["category * method"] = np.eye(len(k))
    null = _penalized(one, k, n)
    family = families.Binomial()
    return {
        name: _fit(GLM(np.column_stack([k, n - k]), design, family=family), design, k, n, null)
        for name, design in designs.items()
    }


def _fit(model: Any, design: Floats, k: Floats, n: Floats, null: float | None) -> Fit:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Warns of separation, which this module reports itself; the likelihood converges anyway.
        warnings.simplefilter("ignore")
        fitted = np.asarray(model.fit(maxiter=100, tol=1e-12).fittedvalues)
    separated = bool((np.minimum(fitted, 1 - fitted) < 1e-6).any())
    penalized = _penalized(design, k, n) if separated else None
    return Fit(
        df=design.shape[1] - 1,
        deviance=_deviance(fitted, k, n),
        answers=int(n.sum()),
        separated=separated,
        penalized=None if penalized is None or not null else 1 - penalized / null,
    )


def _penalized(design: Floats, k: Floats, n: Floats) -> float | None:
    probabilities = firth_probabilities(design, k, n)
    return None if probabilities is None else _deviance(probabilities, k, n)


def _deviance(p: Floats, k: Floats, n: Floats) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        right = np.where(k > 0, k * np.log(p), 0.0)
        wrong = np.where(n > k, (n - k) * np.log1p(-p), 0.0)
    return float(-2 * (right + wrong).sum())


def _independent(design: Floats) -> Floats:
    """Drop columns that are combinations of those before them."""
    kept: list[int] = []
    for column in range(design.shape[1]):
        if np.linalg.matrix_rank(design[:, [*kept, column]]) > len(kept):
            kept.append(column)
    return design[:, kept]


def firth_probabilities(design: Floats, right: Floats, total: Floats) -> Floats | None:
    """Fit the probability of each group by Firth's regression; None if it does not converge.

    Where a group is all right or all wrong, the most likely coefficient is infinite. Penalizing the
    likelihood by the square root of the information's determinant (Firth, 1993) removes that, and
    the bias of first order; for a single group it is the share (right + 1/2) / (total + 1).

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
