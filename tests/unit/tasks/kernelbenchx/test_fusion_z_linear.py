"""Linear layers and what follows them against NumPy and SciPy."""

import numpy as np
import pytest
import torch
from scipy.special import expit, log_softmax

from kerneltruth.tasks.kernelbenchx.fusion_z_linear import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
DRAW = np.random.default_rng(7)
X, W, B = DRAW.normal(size=(2, 3, 5)), DRAW.normal(size=(4, 5)), DRAW.normal(size=4)
LAYER = np.einsum("abk,ok->abo", X, W) + B


def tensors():
    return {"input": torch.tensor(X), "weight": torch.tensor(W), "bias": torch.tensor(B)}


def test_the_layer_is_rectified_before_it_is_normalized():
    active = np.maximum(LAYER, 0)
    mean = active.mean(-1, keepdims=True)
    expected = (active - mean) / np.sqrt(((active - mean) ** 2).mean(-1, keepdims=True) + 0.01)
    result = TASKS["fused_layer_norm_relu_linear"].reference(
        **tensors(), normalized_shape=(4,), eps=0.01, elementwise_affine=True
    )
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_log_softmax_goes_along_the_named_dim(dim):
    result = TASKS["fused_log_softmax_linear"].reference(**tensors(), dim=dim)
    np.testing.assert_allclose(result.numpy(), log_softmax(LAYER, axis=dim), rtol=1e-12, atol=1e-14)


def test_softplus_is_the_identity_beyond_the_threshold_of_the_scaled_value():
    scaled = 2.0 * LAYER
    soft = np.logaddexp(0, scaled) / 2.0
    expected = np.where(scaled > 1.5, LAYER, soft)
    assert (scaled > 1.5).any()
    assert (scaled < 1.5).any()
    result = TASKS["fused_softplus_linear"].reference(**tensors(), beta=2.0, threshold=1.5)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def test_tanh_of_the_layer():
    result = TASKS["fused_tanh_linear"].reference(**tensors())
    np.testing.assert_allclose(result.numpy(), np.tanh(LAYER), rtol=1e-12)


def test_alpha_scales_what_is_subtracted_from_the_sigmoid():
    other = DRAW.normal(size=3)
    result = TASKS["fused_mv_sigmoid_sub"].reference(
        input=torch.tensor(X[0]), vec=torch.tensor(W[0]), other=torch.tensor(other), alpha=-0.5
    )
    np.testing.assert_allclose(result.numpy(), expit(X[0] @ W[0]) + 0.5 * other, rtol=1e-12)
