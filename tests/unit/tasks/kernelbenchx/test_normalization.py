"""Normalizations against NumPy and SciPy."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cosine, minkowski

from kerneltruth.tasks.kernelbenchx.normalization import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
DRAW = np.random.default_rng(21)
INFINITE = float("inf")


def reference_of(name, **arguments):
    tensors = {n: torch.tensor(v) if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
    return TASKS[name].reference(**tensors)


def channels():
    return {
        "running_mean": DRAW.normal(size=3),
        "running_var": DRAW.uniform(0.5, 2, size=3),
        "weight": DRAW.normal(size=3),
        "bias": DRAW.normal(size=3),
    }


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 5)])
def test_running_statistics_normalize_outside_of_training(shape):
    x, own = DRAW.normal(size=shape), channels()
    wide = {n: v.reshape((-1,) + (1,) * (len(shape) - 2)) for n, v in own.items()}
    expected = (x - wide["running_mean"]) / np.sqrt(wide["running_var"] + 0.01)
    expected = expected * wide["weight"] + wide["bias"]
    (result,) = reference_of("batch_norm", input=x, **own, training=False, momentum=0.1, eps=0.01)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-10, atol=1e-12)


def test_training_updates_with_the_unbiased_variance():
    x, own = DRAW.normal(size=(4, 3, 5)), channels() | {"weight": None, "bias": None}
    mean, var = x.mean((0, 2)), x.var((0, 2))
    result = reference_of("batch_norm", input=x, **own, training=True, momentum=0.5, eps=1e-5)
    expected = (x - mean[:, None]) / np.sqrt(var[:, None] + 1e-5)
    np.testing.assert_allclose(result[0].numpy(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result[1].numpy(), 0.5 * own["running_mean"] + 0.5 * mean)
    unbiased = x.var((0, 2), ddof=1)
    np.testing.assert_allclose(result[2].numpy(), 0.5 * own["running_var"] + 0.5 * unbiased)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, INFINITE])
def test_distances_are_divided_by_their_norm(p):
    x1, x2 = DRAW.normal(size=(2, 3, 4)), DRAW.normal(size=(2, 3, 4))
    distance = np.array(
        [[minkowski(a, b, p) for a, b in zip(*r, strict=True)] for r in zip(x1, x2, strict=True)]
    )
    distance = distance + 0.5
    expected = distance / np.linalg.norm(distance, 1, axis=1, keepdims=True)
    result = reference_of(
        "normalize_pairwise_distance",
        x1=x1,
        x2=x2,
        p_distance=p,
        eps_distance=0.5,
        keepdim=False,
        p_norm=1,
        dim_norm=1,
        eps_norm=1e-12,
    )
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def test_a_norm_below_eps_gives_way_to_it():
    x1, x2 = DRAW.normal(size=(3, 4)), DRAW.normal(size=(3, 4))
    result = reference_of(
        "normalize_pairwise_distance",
        x1=x1,
        x2=x2,
        p_distance=2.0,
        eps_distance=0.0,
        keepdim=True,
        p_norm=2,
        dim_norm=0,
        eps_norm=1000.0,
    )
    expected = np.linalg.norm(x1 - x2, axis=1, keepdims=True) / 1000
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def test_the_cosine_does_not_depend_on_the_norm():
    x1, x2 = DRAW.normal(size=(3, 4)), DRAW.normal(size=(3, 4))
    expected = [1 - cosine(a, b) for a, b in zip(x1, x2, strict=True)]
    for p in (1.0, 2.0, INFINITE):
        result = reference_of(
            "normalized_cosine_similarity",
            x1=x1,
            x2=x2,
            dim=1,
            eps_similarity=1e-8,
            p_norm=p,
            eps_norm=1e-12,
        )
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def test_a_row_of_zeros_has_a_cosine_of_zero():
    result = reference_of(
        "normalized_cosine_similarity",
        x1=np.zeros((1, 4)),
        x2=np.ones((1, 4)),
        dim=1,
        eps_similarity=1e-8,
        p_norm=2.0,
        eps_norm=1e-12,
    )
    assert result.tolist() == [0.0]


def test_the_spectral_radius_is_that_of_complex_eigenvalues_too():
    turn = np.array([[0.0, -3.0], [3.0, 0.0]])
    batch = np.stack([turn, np.array([[2.0, 100.0], [0.0, 1.0]])])
    np.testing.assert_allclose(reference_of("spectral_norm_eig", A=batch).numpy(), [3.0, 2.0])
    random = DRAW.normal(size=(7, 7))
    expected = abs(np.linalg.eigvals(random)).max()
    assert float(reference_of("spectral_norm_eig", A=random)) == pytest.approx(expected, rel=1e-10)


def test_the_spectral_radius_of_what_is_not_finite_is_not_a_number():
    batch = np.stack([np.eye(2), np.full((2, 2), np.inf)])
    np.testing.assert_array_equal(reference_of("spectral_norm_eig", A=batch).numpy(), [1.0, np.nan])


@pytest.mark.parametrize("p", [1.0, 2.0, INFINITE])
def test_the_product_is_scaled_by_alpha_and_by_one_plus_beta(p):
    a, x = DRAW.normal(size=(5, 5)), DRAW.normal(size=5)
    a = a + a.T
    result = reference_of("symmetric_matrix_vector_norm", A=a, x=x, alpha=-0.5, beta=-0.25, p=p)
    expected = 0.75 * 0.5 * np.linalg.norm(a @ x, p)
    assert float(result) == pytest.approx(expected, rel=1e-12)
