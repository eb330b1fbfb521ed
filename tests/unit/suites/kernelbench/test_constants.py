"""Sizes inside get_inputs are constants; the bounds of random integers are values, and stay."""

import ast

import pytest

from kerneltruth.suites.kernelbench.constants import constants_of


@pytest.mark.parametrize(
    ("call", "sizes"),
    [
        ("torch.rand(256, 512)", {256, 512}),
        ("torch.rand((256, 512))", {256, 512}),
        ("torch.randint(0, 1000, (256,))", {256}),
        ("randint(0, 1000, (256,))", {256}),
        ("torch.full((256,), 1000)", {256}),
        ("torch.empty(256).random_(0, 1000)", {256}),
        ("makers[0](256)", {256}),
    ],
)
def test_what_bounds_random_integers_is_no_size(call, sizes):
    tree = ast.parse(f"def get_inputs():\n    return [{call}]\n")
    assert {*constants_of(tree).values()} == sizes
