"""Reductions against NumPy and the standard library."""

import math
import statistics

import numpy as np
import pytest
import torch
from scipy.special import ndtr

from kerneltruth.tasks.kernelbenchx.reduce import TASKS as DECLARED
from kerneltruth.tasks.spec import Evidence

TASKS = {t.name: t for t in DECLARED}
DRAW = np.random.default_rng(3)
X = DRAW.normal(size=(3, 5, 7))
DIMS = [-1, 0, 1, (0, 2), (-1, 1), None]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_and_means_go_along_the_named_dims(dim, keepdim):
    x = torch.tensor(X)
    total = TASKS["sum"].reference(input=x, dim=dim, keepdim=keepdim)
    mean = TASKS["mean"].reference(input_tensor=x, dim=dim, keepdim=keepdim)
    np.testing.assert_allclose(total.numpy(), X.sum(dim, keepdims=keepdim), rtol=1e-12)
    np.testing.assert_allclose(mean.numpy(), X.mean(dim, keepdims=keepdim), rtol=1e-12)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("correction", [0, 1, 2])
def test_the_deviation_has_the_degrees_of_freedom_that_are_left(dim, correction):
    result = TASKS["std"].reference(
        input=torch.tensor(X), dim=dim, correction=correction, keepdim=True
    )
    expected = X.std(dim, ddof=correction, keepdims=True)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def test_the_deviation_of_large_neighbours_does_not_cancel():
    numbers = [1e8, 1e8 + 1, 1e8 + 2]
    result = TASKS["std"].reference(
        input=torch.tensor(numbers, dtype=torch.float64), dim=None, correction=1, keepdim=False
    )
    assert float(result) == pytest.approx(statistics.stdev(numbers), rel=1e-12)


def test_the_deviation_of_a_single_element_is_not_a_number():
    one = torch.ones(1, dtype=torch.float64)
    result = TASKS["std"].reference(input=one, dim=0, correction=1, keepdim=False)
    assert math.isnan(float(result))


@pytest.mark.parametrize("dim", [-1, 0, 1, None])
def test_argmax_gives_the_first_of_equals(dim):
    few = DRAW.integers(0, 3, size=(4, 6)).astype(np.float64)
    result = TASKS["argmax"].reference(input_tensor=torch.tensor(few), dim=dim, keepdim=False)
    np.testing.assert_array_equal(result.numpy(), few.argmax(dim))


def evidence(name, x, outputs, reference, **scalars):
    return Evidence(
        inputs={name: x},
        scalars={"keepdim": False, **scalars},
        outputs=outputs,
        reference=reference,
        dtype="float32",
        eps=2.0**-23,
    )


def holds(task, given):
    return all(claim.holds for claim in TASKS[task].claims(given))


@pytest.mark.parametrize(
    ("indices", "right"), [([1, 0], True), ([2, 0], True), ([0, 0], False), ([3, 0], False)]
)
def test_any_index_of_the_minimum_is_right(indices, right):
    x = torch.tensor([[5.0, 1.0, 1.0], [math.nan, 2.0, 3.0]], dtype=torch.float64)
    reference = TASKS["min"].reference(input_tensor=x, dim=-1, keepdim=False)
    given = evidence("input_tensor", x, (reference[0], torch.tensor(indices)), reference, dim=-1)
    assert holds("min", given) is right


def test_the_minimum_of_gelu_is_not_at_the_least_element():
    values = X * ndtr(X)
    result, indices = TASKS["min_gelu"].reference(
        input=torch.tensor(X), dim=1, keepdim=False, approximate="none"
    )
    np.testing.assert_allclose(result.numpy(), values.min(1), rtol=1e-12)
    np.testing.assert_array_equal(indices.numpy(), values.argmin(1))
    assert (values.argmin(1) != X.argmin(1)).any()


def test_the_minimum_of_gelu_over_everything_is_one_number():
    result = TASKS["min_gelu"].reference(
        input=torch.tensor(X), dim=None, keepdim=True, approximate="none"
    )
    assert float(result) == pytest.approx(float((X * ndtr(X)).min()), rel=1e-12)


@pytest.mark.parametrize(("index", "right"), [(0, True), (1, True), (2, False)])
def test_an_index_is_right_where_gelu_is_the_same_within_rounding(index, right):
    x = torch.tensor([[-0.7517, -0.7517 + 1e-6, 0.0]], dtype=torch.float64)
    reference = TASKS["min_gelu"].reference(input=x, dim=1, keepdim=False, approximate="none")
    outputs = (reference[0], torch.tensor([index]))
    given = evidence("input", x, outputs, reference, dim=1, approximate="none")
    assert holds("min_gelu", given) is right
