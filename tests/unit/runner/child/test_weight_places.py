"""Weights find their places among a model's parameters and buffers."""

import pytest
import torch
from torch import nn

from kerneltruth.runner.child.weight_places import weight_places
from kerneltruth.runner.unsupported import UnsupportedError


def shaped(kind, *shapes):
    """A model with parameters of these names and shapes, in order, made by `kind`."""
    model = nn.Module()
    for name, shape in shapes:
        *path, last = name.split(".")
        home = model
        for part in path:
            if not hasattr(home, part):
                home.add_module(part, nn.Module())
            home = getattr(home, part)
        home.register_parameter(last, nn.Parameter(kind(*shape)))
    return model


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        # A Sequential with activations has other numbers.
        (
            [("net.0.weight", (2, 2)), ("net.1.weight", (2, 2)), ("net.2.weight", (2, 2))],
            {"net.0.weight": 0, "net.2.weight": 1, "net.4.weight": 2},
        ),
        ([("norm_weight", (2,)), ("add", (2,))], {"norm.weight": 0, "other.weight": 1}),
        # Statistics get none of the weights, by whatever name they are parameters.
        (
            [("mean", (2,)), ("var", (2,)), ("weight", (2,)), ("bias", (2,))],
            {"bn.weight": 2, "bn.bias": 3},
        ),
        ([("x.b", (4,)), ("a", (4, 1, 1))], {"bias": 1, "gemm.bias": 0}),
    ],
)
def test_weights_find_places_by_what_names_and_shapes_say(own, expected):
    model = shaped(torch.rand, *own)
    weights = {name: torch.zeros(own[i][1]) for name, i in expected.items()}
    places = weight_places(model, weights, {}, keeps_statistics=False)
    assert places == {own[i][0]: name for name, i in expected.items()}


def test_weights_that_are_filled_with_a_number_go_where_that_number_is():
    model = shaped(torch.rand, ("c.bias", (2,)))
    model.register_parameter("shift_bias", nn.Parameter(torch.zeros(2)))
    weights = {"first.bias": torch.ones(2), "norm.bias": torch.ones(2)}
    places = weight_places(model, weights, {"norm.bias": 0.0}, keeps_statistics=False)
    assert places == {"c.bias": "first.bias", "shift_bias": "norm.bias"}


def test_of_two_places_for_a_weight_none_is_guessed():
    model = shaped(torch.rand, ("one", (2,)), ("two", (2,)))
    with pytest.raises(UnsupportedError, match="no parameter for the weight norm"):
        weight_places(model, {"norm": torch.ones(2)}, {}, keeps_statistics=False)
