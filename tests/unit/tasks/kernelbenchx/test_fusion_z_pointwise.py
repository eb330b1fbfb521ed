"""Element-by-element fusions against Python's own arithmetic and mpmath."""

import math

import mpmath
import numpy as np
import pytest
import torch

from kerneltruth.tasks.kernelbenchx.fusion_z_pointwise import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
NUMBERS = [-7.25, -2.0, -0.5, 0.1, 1.0, 3.0, 9.75]


def gelu(x):
    return x * float(mpmath.ncdf(x))


def gelu_tanh(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def table(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_log_tanh_is_the_tanh_of_the_logarithm():
    numbers = [1e-300, 0.25, 1.0, 1.0000001, 40.0]
    expected = [float(mpmath.tanh(mpmath.log(x))) for x in numbers]
    result = TASKS["fused_log_tanh"].reference(input=table(*numbers))
    assert result.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("approximate", "function"), [("none", gelu), ("tanh", gelu_tanh)])
def test_sub_gelu_takes_gelu_of_the_scaled_difference(approximate, function):
    expected = [function(x + 2.0 * 0.75) for x in NUMBERS]
    result = TASKS["fused_sub_gelu"].reference(
        input=table(*NUMBERS), other=table(0.75), alpha=-2.0, approximate=approximate
    )
    assert result.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_masked_select_keeps_the_order_of_rows_before_it_adds():
    rows = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
    mask = [True, False, True]
    expected = [gelu(x + 0.5 * 3.0) for x in (1.0, 3.0, 4.0, -6.0)]
    result = TASKS["fused_masked_select_add_gelu"].reference(
        input=torch.tensor(rows),
        mask=torch.tensor(mask),
        other=3.0,
        alpha=0.5,
        approximate="none",
    )
    assert result.tolist() == pytest.approx(expected, rel=1e-12)


def test_alpha_of_mul_sub_scales_what_is_subtracted_only():
    result = TASKS["fused_mul_sub"].reference(
        input=table(2.0, 3.0), other_mul=table(5.0, -1.0), other_sub=table(4.0, 8.0), alpha=0.5
    )
    assert result.tolist() == [8.0, -7.0]


def test_relu_comes_before_the_square_root():
    result = TASKS["fused_relu_sqrt"].reference(input=table(-4.0, 0.0, 2.25), inplace=False)
    assert result.tolist() == [0.0, 0.0, 1.5]


@pytest.mark.parametrize("dims", [(2,), (3, 1), (2, 1, 2)])
def test_tile_exp_repeats_as_numpy_does(dims):
    values = np.linspace(-3, 3, 6).reshape(2, 3)
    result = TASKS["fused_tile_exp"].reference(input=torch.tensor(values), dims=dims)
    np.testing.assert_allclose(result.numpy(), np.exp(np.tile(values, dims)), rtol=1e-14)
