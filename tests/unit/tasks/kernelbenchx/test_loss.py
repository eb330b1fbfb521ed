"""Losses against NumPy, SciPy and loops."""

import math

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, rel_entr

from kerneltruth.tasks.kernelbenchx.loss import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
DRAW = np.random.default_rng(5)
A, B = DRAW.uniform(size=(3, 4)), DRAW.uniform(size=(3, 4))
REDUCE = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}
REDUCTIONS = sorted(REDUCE)


def reference_of(name, **arguments):
    tensors = {n: torch.tensor(v) if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
    return TASKS[name].reference(**tensors).numpy()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_squared_errors_are_reduced(reduction):
    expected = REDUCE[reduction]((A - B) ** 2)
    result = reference_of("mse_loss", input=A, target=B, reduction=reduction)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("beta", [0.0, 0.25, 5.0])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_small_errors_are_squared_and_large_ones_are_not(beta, reduction):
    def loss(d):
        return d * d / (2 * beta) if d < beta else d - beta / 2

    expected = REDUCE[reduction](np.vectorize(loss)(abs(A - B)))
    result = reference_of("smooth_l1_loss", input=A, target=B, beta=beta, reduction=reduction)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_the_logarithm_of_a_probability_of_zero_is_minus_a_hundred(reduction):
    p, t, w = np.array([0.0, 1.0, 0.25]), np.array([0.5, 0.5, 1.0]), np.array([1.0, 2.0, 3.0])
    terms = w * np.array([50.0, 50.0, -math.log(0.25)])
    result = reference_of("binary_cross_entropy", input=p, target=t, weight=w, reduction=reduction)
    np.testing.assert_allclose(result, REDUCE[reduction](terms), rtol=1e-12)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_divergence_is_the_relative_entropy(reduction):
    target = B.copy()
    target[0, 0] = 0.0
    expected = REDUCE[reduction](rel_entr(target, A))
    result = reference_of(
        "kl_div", input=np.log(A), target=target, reduction=reduction, log_target=False
    )
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_the_batch_mean_of_logarithmic_targets_divides_by_the_rows():
    expected = rel_entr(B, A).sum() / 3
    result = reference_of(
        "kl_div", input=np.log(A), target=np.log(B), reduction="batchmean", log_target=True
    )
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def by_loop(scores, target, weight, ignore_index, reduction):
    """Negative log likelihoods of scores [N, C], one row at a time."""
    losses, weights = [], []
    for row, wanted in zip(scores, target, strict=True):
        counts = wanted != ignore_index
        own = 0.0 if not counts else 1.0 if weight is None else weight[wanted]
        losses.append(-row[wanted] * own if counts else 0.0)
        weights.append(own)
    total = np.sum(losses)
    return {"none": np.array(losses), "sum": total, "mean": total / np.sum(weights)}[reduction]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, np.array([0.5, 2.0, 0.0, 1.5])])
@pytest.mark.parametrize("ignore_index", [-100, 0, 2])
def test_ignored_targets_count_neither_above_nor_below(reduction, weight, ignore_index):
    scores = DRAW.normal(size=(6, 4)) * 30
    target = np.array([0, 1, 2, 3, 1, 0])
    target[3] = ignore_index
    given = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction}
    for name, rows in (("nll_loss", scores), ("cross_entropy", log_softmax(scores, axis=1))):
        result = reference_of(name, input=scores, target=target, **given)
        np.testing.assert_allclose(result, by_loop(rows, target, **given), rtol=1e-12)


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_the_mean_over_ignored_targets_alone_is_not_a_number(name):
    target = np.full(3, -100)
    given = {"input": A, "target": target, "weight": None, "ignore_index": -100}
    assert math.isnan(reference_of(name, **given, reduction="mean"))
    assert reference_of(name, **given, reduction="sum") == 0.0


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_further_dims_stand_behind_the_classes(name):
    scores = DRAW.normal(size=(2, 3, 5))
    target = DRAW.integers(0, 3, size=(2, 5))
    rows = scores if name == "nll_loss" else log_softmax(scores, axis=1)
    expected = [[-rows[n, target[n, d], d] for d in range(5)] for n in range(2)]
    given = {"weight": None, "ignore_index": -100, "reduction": "none"}
    result = reference_of(name, input=scores, target=target, **given)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
