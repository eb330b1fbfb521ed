"""Activations against SciPy, mpmath and NumPy."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy.special import expit, ndtr

from kerneltruth.tasks.kernelbenchx.activation import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
NUMBERS = [-104.0, -9.7, -2.0, -0.75, -1e-9, 0.0, 1e-9, 0.5, 5.5, 88.7]
X = torch.tensor(NUMBERS, dtype=torch.float64)


@pytest.mark.parametrize("name", ["gelu", "gelu_bf16", "gelu_fp16"])
def test_gelu_is_x_times_the_normal_distribution_function(name):
    expected = [float(mpmath.mpf(x) * mpmath.ncdf(x)) for x in NUMBERS]
    result = TASKS[name].reference(input=X, approximate="none")
    # PyTorch loses the tail, where 1 + erf cancels, to the ulps of a float64 below 1.
    assert result.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_gelu_by_tanh_is_its_own_formula():
    inner = [math.sqrt(2 / math.pi) * (x + 0.044715 * x**3) for x in NUMBERS]
    expected = [0.5 * x * (1 + math.tanh(i)) for x, i in zip(NUMBERS, inner, strict=True)]
    result = TASKS["gelu"].reference(input=X, approximate="tanh")
    assert result.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_gelu_of_int8_is_cut_toward_zero():
    x = torch.arange(-128, 128, dtype=torch.int8)
    wide = x.numpy().astype(np.float64)
    expected = np.trunc(wide * ndtr(wide))
    expected[wide >= 6] = wide[wide >= 6]
    result = TASKS["gelu_int8"].reference(input=x, approximate="none")
    assert result.dtype == torch.int8
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize(
    ("value", "answer", "right"),
    [
        (1, 0, True),
        (4, 3, True),
        (4, 4, False),
        (6, 5, True),
        (6, 6, True),
        (8, 7, False),
        (127, 127, True),
        (-1, 0, True),
        (-1, -1, False),
    ],
)
def test_gelu_of_int8_accepts_what_a_float32_computation_cuts(value, answer, right):
    (output,) = TASKS["gelu_int8"].outputs
    x, got = (torch.tensor([n], dtype=torch.int8) for n in (value, answer))
    assert bool(output.accept({"input": x}, (got,), (x,))) is right


def test_selu_scales_both_of_its_branches():
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    expected = [scale * (x if x > 0 else alpha * math.expm1(x)) for x in NUMBERS]
    result = TASKS["selu"].reference(input=X, inplace=False)
    assert result.tolist() == pytest.approx(expected, rel=1e-12)


def test_sigmoid_reaches_zero_and_one():
    result = TASKS["sigmoid"].reference(input=X)
    np.testing.assert_allclose(result.numpy(), expit(X.numpy()), rtol=1e-14)


def test_tanh_keeps_tiny_values():
    result = TASKS["tanh"].reference(input_tensor=X)
    assert result.tolist() == pytest.approx([math.tanh(x) for x in NUMBERS], rel=1e-14)


def test_a_slope_above_one_makes_negative_values_larger():
    result = TASKS["leaky_relu"].reference(input=X, negative_slope=1.5, inplace=True)
    assert result.tolist() == [x if x > 0 else 1.5 * x for x in NUMBERS]


def test_relu_keeps_nan():
    x = torch.tensor([math.nan, -math.inf, math.inf, -0.5, 2.0], dtype=torch.float64)
    result = TASKS["relu"].reference(input=x, inplace=False)
    np.testing.assert_array_equal(result.numpy(), [math.nan, 0.0, math.inf, 0.0, 2.0])


def test_a_row_of_weights_scales_the_activated_product():
    draw = np.random.default_rng(1)
    x, first = draw.normal(size=(2, 3, 4)), draw.normal(size=(4, 5))
    second, bias = draw.normal(size=5), draw.normal(size=(3, 1))
    expected = np.tanh(expit(np.einsum("bmk,kn->bmn", x, first))) * second + bias
    named = {"input": x, "weight1": first, "weight2": second, "bias": bias}
    result = TASKS["combined_activation"].reference(
        **{n: torch.tensor(v) for n, v in named.items()}
    )
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)
