"""Index operators against NumPy and loops."""

import itertools
import math

import numpy as np
import pytest
import torch

from kerneltruth.tasks.kernelbenchx.index import TASKS as DECLARED
from kerneltruth.tasks.spec import Evidence

TASKS = {t.name: t for t in DECLARED}
DRAW = np.random.default_rng(9)
X = DRAW.normal(size=(2, 3, 4))


def reference_of(name, **arguments):
    tensors = {n: torch.tensor(v) if isinstance(v, np.ndarray) else v for n, v in arguments.items()}
    return TASKS[name].reference(**tensors).numpy()


@pytest.mark.parametrize("dim", [-1, 0, 1, -2])
def test_slices_are_taken_in_the_order_of_the_index(dim):
    index = np.array([1, 0, 1])
    expected = X.take(index, axis=dim)
    np.testing.assert_array_equal(
        reference_of("index_select", input=X, dim=dim, index=index), expected
    )


@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_filled_positions_hold_the_value_and_the_input_stays_as_it_was(dim):
    index, before = np.array([1, 1]), torch.tensor(X)
    expected = np.moveaxis(X.copy(), dim, 0)
    expected[1] = -3
    filled = TASKS["index_fill_"].reference(dim=dim, x=before, index=torch.tensor(index), value=-3)
    for result in filled:
        np.testing.assert_array_equal(result.numpy(), np.moveaxis(expected, 0, dim))
    np.testing.assert_array_equal(before.numpy(), X)


def test_filling_nothing_changes_nothing():
    none = torch.tensor([], dtype=torch.int64)
    result, _ = TASKS["index_fill_"].reference(dim=1, x=torch.tensor(X), index=none, value=7.0)
    np.testing.assert_array_equal(result.numpy(), X)


def test_what_is_filled_in_place_is_compared():
    fill = TASKS["index_fill_"]
    assert fill.written({}) == ("x",)
    assert [o.name for o in fill.outputs] == ["out", "x"]


@pytest.mark.parametrize("shape", [(2, 3, 4), (4,), (3, 1)])
def test_chosen_elements_come_in_row_major_order(shape):
    mask = DRAW.uniform(size=shape) < 0.5
    everywhere = np.broadcast_to(mask, X.shape)
    expected = [X[i] for i in np.ndindex(X.shape) if everywhere[i]]
    np.testing.assert_array_equal(reference_of("masked_select", input=X, mask=mask), expected)


@pytest.mark.parametrize("dims", [*itertools.permutations(range(3)), (-1, 0, 1)])
def test_dims_are_put_into_another_order(dims):
    result = reference_of("permute_copy", input=X, dims=dims)
    np.testing.assert_array_equal(result, X.transpose(dims))


def test_a_nan_that_is_not_chosen_leaves_no_trace():
    x = np.array([[math.nan, 1.0]])
    cond, other = np.array([[False], [True]]), np.array(2.0)
    result = reference_of("expand_where", input=x, target_sizes=(2, 2), cond=cond, other=other)
    np.testing.assert_array_equal(result, [[2.0, 2.0], [math.nan, 1.0]])


def test_a_target_size_of_minus_one_keeps_the_dim():
    x, cond = np.arange(3.0).reshape(3, 1), np.array([True, False, True, True])
    result = reference_of(
        "expand_where", input=x, target_sizes=(2, -1, 4), cond=cond, other=np.ones(4)
    )
    expected = np.where(cond, np.broadcast_to(x, (2, 3, 4)), 1.0)
    np.testing.assert_array_equal(result, expected)


def scatter_claims(index, got, dim=1):
    given = {
        "input": torch.zeros(2, 3, dtype=torch.float64),
        "index": torch.tensor(index),
        "src": torch.tensor([[1.0, 2.0, 9.0], [3.0, 4.0, 9.0]], dtype=torch.float64),
    }
    outputs = (torch.tensor(got, dtype=torch.float64),)
    evidence = Evidence(
        inputs=given,
        scalars={"dim": dim},
        outputs=outputs,
        reference=outputs,
        dtype="float32",
        eps=2.0**-23,
    )
    return all(claim.holds for claim in TASKS["scatter"].claims(evidence))


def test_scattered_values_stand_where_the_index_points():
    assert scatter_claims([[2, 0], [1, 0]], [[2, 0, 1], [4, 3, 0]])
    assert not scatter_claims([[2, 0], [1, 0]], [[2, 0, 1], [4, 3, 9]])
    assert not scatter_claims([[2, 0], [1, 0]], [[2, 0, 0], [4, 3, 0]])


def test_either_of_two_values_for_one_place_is_right():
    for winner in (1, 2):
        assert scatter_claims([[2, 2], [1, 0]], [[0, 0, winner], [4, 3, 0]])
    assert not scatter_claims([[2, 2], [1, 0]], [[0, 0, 3], [4, 3, 0]])


def test_an_index_with_fewer_rows_leaves_the_other_rows_alone():
    assert scatter_claims([[1, 0]], [[2, 1, 0], [0, 0, 0]])
    assert not scatter_claims([[1, 0]], [[2, 1, 0], [4, 3, 0]])


def test_the_scatter_of_the_reference_keeps_its_own_claims():
    index = DRAW.integers(0, 2, size=(3, 3))
    result = reference_of(
        "scatter", input=np.zeros((2, 3)), dim=0, index=index, src=np.ones((3, 3))
    )
    expected = np.zeros((2, 3))
    for i, j in np.ndindex(3, 3):
        expected[index[i, j], j] = 1.0
    np.testing.assert_array_equal(result, expected)
