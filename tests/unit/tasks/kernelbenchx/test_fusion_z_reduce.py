"""Reducing fusions against NumPy, SciPy and loops."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from kerneltruth.tasks.kernelbenchx.fusion_z_reduce import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
DRAW = np.random.default_rng(11)


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_copies_count_in_the_softmax_too(dim):
    values = DRAW.normal(size=(3, 4))
    expected = log_softmax(np.repeat(values, 3, axis=dim), axis=0 if dim is None else dim)
    task = TASKS["fused_repeat_interleave_log_softmax"]
    for formula in (task.reference, *task.admissible):
        result = formula(input=torch.tensor(values), repeats=3, dim=dim, output_size=None)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("dim", [0, -1])
def test_softmax_of_logarithms_is_the_share_of_the_sum(dim):
    values = DRAW.uniform(0.1, 50, size=(3, 4))
    result = TASKS["fused_softmax_log"].reference(input=torch.tensor(values), dim=dim)
    np.testing.assert_allclose(
        result.numpy(), values / values.sum(axis=dim, keepdims=True), rtol=1e-12
    )


@pytest.mark.parametrize("dim", [0, 1, (0, 2), (-1,)])
@pytest.mark.parametrize("correction", [0, 1, 2])
def test_the_deviation_is_that_of_all_sums_together(dim, correction):
    values = DRAW.normal(size=(5, 4, 3))
    expected = values.sum(axis=dim).std(ddof=correction)
    result = TASKS["fused_sum_std"].reference(
        input=torch.tensor(values), dim=dim, keepdim=False, correction=correction
    )
    assert result.shape == ()
    assert float(result) == pytest.approx(expected, rel=1e-12)


def test_a_single_sum_deviates_by_nothing():
    result = TASKS["fused_sum_std"].reference(
        input=torch.ones(3, 4), dim=None, keepdim=False, correction=1
    )
    assert result.shape == ()
    assert float(result) == 0.0


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_distances_are_of_all_pairs_of_normalized_rows(p):
    one, other = DRAW.normal(size=(3, 5)), DRAW.normal(size=(2, 5))
    one[1], other[0] = 0.0, 2.0 * one[0]
    expected = np.zeros((3, 2))
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            unit_a, unit_b = (v / max((np.abs(v) ** p).sum() ** (1 / p), 1e-12) for v in (a, b))
            expected[i, j] = max((np.abs(unit_a - unit_b) ** p).sum() ** (1 / p), 1e-6)
    result = TASKS["fused_pairwise_distance_normalize"].reference(
        x1=torch.tensor(one),
        x2=torch.tensor(other),
        p_norm=p,
        eps_norm=1e-12,
        eps_distance=1e-6,
        keepdim=True,
    )
    assert expected[0, 0] == 1e-6
    np.testing.assert_allclose(result.numpy()[..., 0], expected, rtol=1e-12)
