"""What tensors of models may hold: weights of a constructor's size, triangles, distributions."""

import math

import pytest
import torch

from kerneltruth.cases.philox import stream
from kerneltruth.cases.recipes import RECIPES
from kerneltruth.cases.values import draw
from kerneltruth.errors import DeclarationError
from kerneltruth.tasks.spec import TensorSpec


def draw_values(spec, shape, recipe="uniform", dtype="float32"):
    return draw(spec, shape, dtype=dtype, recipe=recipe, rng=stream(5, "values", spec.name))


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_weights_are_of_one_size_whatever_the_recipe(recipe):
    spec = TensorSpec(name="w", dims=("8", "100"), kind="weight", gain=2.0)
    values = draw_values(spec, (8, 100), recipe)
    assert float(values.abs().max()) <= 2.0 / math.sqrt(100)
    assert float(values.std()) > 1.0 / math.sqrt(100)


def test_weights_keep_to_their_span():
    spec = TensorSpec(name="w", dims=("64",), kind="weight", span=(0.75, 1.25))
    values = draw_values(spec, (64,))
    assert 0.75 <= float(values.min()) < float(values.max()) < 1.25


@pytest.mark.parametrize("recipe", sorted(RECIPES))
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_of_a_distribution_sum_to_one(recipe, dtype):
    spec = TensorSpec(name="p", dims=("5", "33"), kind="stochastic")
    values = draw_values(spec, (5, 33), recipe, dtype).double()
    assert bool((values >= 0).all())
    slack = 33 * float(torch.finfo(getattr(torch, dtype)).eps)
    assert float((values.sum(-1) - 1).abs().max()) <= slack


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_logarithms_of_a_distribution_are_finite_and_sum_to_one(recipe):
    spec = TensorSpec(name="p", dims=("5", "33"), kind="log_stochastic")
    values = draw_values(spec, (5, 33), recipe).double()
    assert bool((values <= 0).all())
    assert float(values.logsumexp(-1).abs().max()) < 1e-5


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_normalized_rows_have_length_one_and_their_direction_from_the_recipe(recipe):
    spec = TensorSpec(name="k", dims=("5", "33"), kind="normalized")
    values = draw_values(spec, (5, 33), recipe).double()
    assert float((values.norm(dim=-1) - 1).abs().max()) < 1e-6
    if recipe == "normal":
        assert float(values.std()) > 0.1


@pytest.mark.parametrize("count", [1, 7, 12])
@pytest.mark.parametrize("recipe", ["uniform", "nan_injected", "constant_rows"])
def test_rows_repeat_halves_or_pairs_in_every_size(recipe, count):
    halves = draw_values(
        TensorSpec(name="c", dims=("5", str(count)), kind="halves"), (5, count), recipe
    )
    pairs = draw_values(
        TensorSpec(name="c", dims=("5", str(count)), kind="pairs"), (5, count), recipe
    )
    half = (count + 1) // 2
    assert halves.shape == pairs.shape == (5, count)
    torch.testing.assert_close(
        halves[:, half:], halves[:, : count - half], rtol=0, atol=0, equal_nan=True
    )
    torch.testing.assert_close(
        pairs[:, 1::2], pairs[:, ::2][:, : count // 2], rtol=0, atol=0, equal_nan=True
    )


def test_rows_of_a_form_may_keep_their_dtype_and_other_kinds_say_it_themselves():
    spec = TensorSpec(name="cos", dims=("8",), kind="halves", keeps="float32")
    assert spec.dtype("float16") == "float32"
    with pytest.raises(DeclarationError, match="give its dtype as its kind"):
        TensorSpec(name="cos", dims=("8",), keeps="float32")


@pytest.mark.parametrize(("kind", "empty"), [("tril", torch.triu), ("triu", torch.tril)])
def test_a_triangle_has_zeros_on_its_other_side(kind, empty):
    values = draw_values(TensorSpec(name="a", dims=("7", "7"), kind=kind), (7, 7))
    assert not bool(empty(values, 1 if kind == "tril" else -1).any())
    assert int((values != 0).sum()) == 28
