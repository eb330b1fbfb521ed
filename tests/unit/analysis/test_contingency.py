"""Deviances of tables: published figures, closed forms, and statsmodels."""

import math

import numpy as np
import pytest
import statsmodels.api as sm

from kerneltruth.analysis.contingency import (
    additive_deviance,
    additive_odds,
    cells_deviance,
    columns_deviance,
    null_deviance,
    rows_deviance,
)
from kerneltruth.analysis.logistic import firth_probabilities

# Admissions to Berkeley in 1973 (Bickel, Hammel, O'Connell, 1975): departments by sex.
ADMITTED = np.array([[512, 89], [353, 17], [120, 202], [138, 131], [53, 94], [22, 24]], float)
REFUSED = np.array([[313, 19], [207, 8], [205, 391], [279, 244], [138, 299], [351, 317]], float)
APPLIED = ADMITTED + REFUSED


def test_the_deviances_of_berkeleys_admissions_are_the_published_ones():
    # As R's documentation and textbooks print them, about the model with a cell for each.
    cells = cells_deviance(ADMITTED, APPLIED)
    assert null_deviance(ADMITTED, APPLIED) - cells == pytest.approx(877.056, abs=1e-3)
    assert columns_deviance(ADMITTED, APPLIED) - cells == pytest.approx(783.607, abs=1e-3)
    assert rows_deviance(ADMITTED, APPLIED) - cells == pytest.approx(21.736, abs=1e-3)
    assert additive_deviance(ADMITTED, APPLIED) - cells == pytest.approx(20.204, abs=1e-3)


def test_the_null_deviance_is_the_entropy_of_the_share():
    right, total = np.array([[3.0]]), np.array([[8.0]])
    expected = -2 * (3 * math.log(3 / 8) + 5 * math.log(5 / 8))
    assert null_deviance(right, total) == pytest.approx(expected)


def test_where_all_are_right_nothing_is_left_to_explain():
    total = np.full((2, 3), 4.0)
    assert null_deviance(total, total) == 0
    assert additive_deviance(total, total) == pytest.approx(0, abs=1e-8)


def random_table(seed, rows, columns):
    rng = np.random.default_rng(seed)
    total = rng.integers(0, 9, (rows, columns)).astype(float)
    total[0, 0] = max(total[0, 0], 1)
    return np.floor(rng.random((rows, columns)) * (total + 1)).clip(max=total), total


def by_statsmodels(right, total):
    """The additive model's deviance of single answers."""
    rows, columns = right.shape
    used = total.ravel() > 0
    design = np.hstack(
        [
            np.ones((rows * columns, 1)),
            np.repeat(np.eye(rows)[:, 1:], columns, axis=0),
            np.tile(np.eye(columns)[:, 1:], (rows, 1)),
        ]
    )[used]
    k, n = right.ravel()[used], total.ravel()[used]
    model = sm.GLM(np.column_stack([k, n - k]), design, family=sm.families.Binomial())
    p = model.fit(tol=1e-13, maxiter=200).fittedvalues
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(k > 0, k * np.log(p), 0) + np.where(n > k, (n - k) * np.log1p(-p), 0)
    return -2 * terms.sum()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore")  # statsmodels warns of separated tables, which are among them
def test_the_additive_deviance_is_statsmodels(seed):
    right, total = random_table(seed, 5, 4)
    found = float(additive_deviance(right, total))
    assert found == pytest.approx(by_statsmodels(right, total), rel=1e-8, abs=1e-6)


def test_a_stack_of_tables_is_fitted_table_by_table():
    tables = [random_table(seed, 4, 3) for seed in range(6)]
    stacked = additive_deviance(np.stack([r for r, _ in tables]), np.stack([t for _, t in tables]))
    alone = [float(additive_deviance(right, total)) for right, total in tables]
    assert stacked == pytest.approx(alone, rel=1e-6, abs=1e-5)


def test_the_additive_fit_has_the_margins_of_what_was_seen():
    fitted = APPLIED / (1 + np.exp(-additive_odds(ADMITTED, APPLIED)))
    assert fitted.sum(0) == pytest.approx(ADMITTED.sum(0))
    assert fitted.sum(1) == pytest.approx(ADMITTED.sum(1))


def test_a_row_that_is_all_wrong_costs_no_more_steps_than_others():
    right = np.stack([ADMITTED, ADMITTED * [[0], [1], [1], [1], [1], [1]]])
    stacked = additive_deviance(right, np.stack([APPLIED, APPLIED]))
    # What is certain leaves nothing: the deviance is that of the other rows.
    assert stacked[1] == pytest.approx(float(additive_deviance(ADMITTED[1:], APPLIED[1:])))


def test_larger_models_leave_less():
    right, total = random_table(3, 6, 4)
    left = [
        float(d(right, total))
        for d in (null_deviance, rows_deviance, additive_deviance, cells_deviance)
    ]
    assert left == sorted(left, reverse=True)
    assert columns_deviance(right, total) >= left[2]


def test_firths_estimate_of_groups_adds_half_an_answer_of_either_kind():
    design = np.array([[1.0, 0.0], [1.0, 1.0]])
    found = firth_probabilities(design, np.array([0.0, 3.0]), np.array([30.0, 10.0]))
    assert found == pytest.approx([0.5 / 31, 3.5 / 11], rel=1e-6)


def test_firths_estimate_is_finite_where_a_column_is_all_right():
    design = np.array([[1.0, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]])
    found = firth_probabilities(design, np.array([2.0, 5, 3, 5]), np.full(4, 5.0))
    assert found is not None
    assert ((found > 0) & (found < 1)).all()
    assert (found[[1, 3]] > 0.8).all()


def test_firths_estimate_maximizes_the_penalized_likelihood():
    rng = np.random.default_rng(1)
    design = np.column_stack([np.ones(8), rng.normal(size=(8, 2))])
    total = np.full(8, 6.0)
    right = np.array([6.0, 0, 6, 3, 6, 1, 0, 6])
    p = firth_probabilities(design, right, total)
    beta = np.linalg.lstsq(design, np.log(p / (1 - p)), rcond=None)[0]

    def penalized(b):
        q = 1 / (1 + np.exp(-design @ b))
        information = (design.T * (total * q * (1 - q))) @ design
        return (right * np.log(q) + (total - right) * np.log1p(-q)).sum() + 0.5 * np.linalg.slogdet(
            information
        )[1]

    best = penalized(beta)
    steps = [s * row for row in np.eye(3) for s in (1e-3, -1e-3)]
    assert all(penalized(beta + step) < best for step in steps)
