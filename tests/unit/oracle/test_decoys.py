"""Decoys: wrong results of every kind, and which of them are right on a case after all."""

import pytest
import torch

from kerneltruth.oracle.decoys import GAIN, LAST_TILE, decoys, is_right

RIGHT = torch.linspace(1, 2, 40).reshape(2, 20)


def offered(rounded, inputs=None, dtype="float32"):
    return dict(decoys(rounded, inputs or {}, dtype))


@pytest.mark.parametrize("dtype", GAIN)
def test_every_decoy_has_the_dtype_and_shape_of_the_output(dtype):
    rounded = RIGHT.to(getattr(torch, dtype))
    found = offered(rounded, {"x": RIGHT}, dtype)
    assert set(found) == {"zeros", "constant", "copy of x", "last tile zeroed", "gain"}
    assert {(d.dtype, d.shape) for d in found.values()} == {(rounded.dtype, rounded.shape)}


@pytest.mark.parametrize("dtype", GAIN)
def test_the_gain_is_no_rounding_error_in_any_dtype(dtype):
    rounded = RIGHT.to(getattr(torch, dtype))
    assert not is_right(offered(rounded, dtype=dtype)["gain"], rounded, dtype)


def test_the_constant_is_the_mean_of_what_is_finite():
    rounded = torch.tensor([1.0, 3.0, float("inf"), float("nan")])
    assert offered(rounded)["constant"].tolist() == [2.0] * 4


def test_the_last_tile_alone_is_zeroed():
    tail = offered(RIGHT)["last tile zeroed"].reshape(-1)
    assert tail[-LAST_TILE:].eq(0).all()
    assert torch.equal(tail[:-LAST_TILE], RIGHT.reshape(-1)[:-LAST_TILE])


def test_an_output_of_one_tile_has_no_last_tile():
    assert "last tile zeroed" not in offered(RIGHT[0, :LAST_TILE])


def test_only_a_floating_input_of_the_same_shape_is_copied_and_only_one():
    inputs = {
        "none": None,
        "index": torch.ones(2, 20, dtype=torch.int64),
        "row": torch.ones(20),
        "x": torch.zeros(2, 20),
        "y": torch.ones(2, 20),
    }
    assert [n for n in offered(RIGHT, inputs) if n.startswith("copy")] == ["copy of x"]


def test_an_integer_output_has_no_gain():
    assert "gain" not in offered(torch.arange(40), dtype="int64")


def test_making_decoys_leaves_the_right_result_alone():
    before = RIGHT.clone()
    offered(RIGHT)
    assert torch.equal(RIGHT, before)


def test_zeros_are_right_where_zeros_are_expected():
    zeros = torch.zeros(3)
    assert is_right(zeros, zeros, "float32")
    assert not is_right(zeros, torch.tensor([0.0, 0.0, 1.0]), "float32")


def test_what_is_within_rounding_is_right():
    assert is_right(torch.tensor([1.0 + 2**-23]), torch.tensor([1.0]), "float32")
    assert not is_right(torch.tensor([1.0 + 2**-20]), torch.tensor([1.0]), "float32")


def test_nan_is_right_in_the_place_of_nan_alone():
    nan = torch.tensor([float("nan")])
    assert is_right(nan, nan, "float32")
    assert not is_right(nan, torch.tensor([1.0]), "float32")
