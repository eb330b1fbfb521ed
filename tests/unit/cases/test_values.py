"""Recipes, kinds, ranges and rounding."""

import math

import pytest
import torch

from kerneltruth.cases.philox import stream
from kerneltruth.cases.recipes import RECIPES
from kerneltruth.cases.values import draw, recipe_of, rounded
from kerneltruth.errors import InternalError
from kerneltruth.tasks.spec import TensorSpec

FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
SPEC = TensorSpec(name="x", dims=("M", "N"))


def _draw(recipe, *, shape=(6, 40), dtype="float32", kind="real", seed=1, **more):
    extent = "E" if kind == "index" else None
    spec = TensorSpec(name="x", dims=("M", "N"), kind=kind, extent=extent)
    rng = stream(seed, "values", "x")
    return draw(spec, shape, dtype=dtype, recipe=recipe, rng=rng, **more)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int32", "int64", "bool"])
def test_every_recipe_draws_every_dtype_the_same_way_twice(dtype):
    for recipe in RECIPES:
        once, again = (_draw(recipe, shape=(3, 7), dtype=dtype) for _ in range(2))
        assert once.dtype == getattr(torch, dtype), recipe
        assert once.shape == (3, 7), recipe
        assert torch.equal(once.view(torch.uint8), again.view(torch.uint8)), recipe


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("recipe", [n for n, r in RECIPES.items() if r.domain == "core"])
def test_core_recipes_are_finite_and_moderate(recipe, dtype):
    values = _draw(recipe, dtype=dtype).double()
    assert values.isfinite().all()
    assert values.abs().max() <= 4608


@pytest.mark.parametrize("recipe", ["nan_injected", "adversarial"])
@pytest.mark.parametrize("seed", range(5))
def test_extended_recipes_hold_special_values_and_clean_rows(recipe, seed):
    values = _draw(recipe, shape=(8, 64), seed=seed)
    bad = ~values.isfinite()
    assert bad.any()
    assert not bad.all(1).any()


def test_nan_injected_puts_a_special_value_even_into_a_single_element():
    assert not all(_draw("nan_injected", shape=(1,), seed=s).isfinite() for s in range(12))


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_has_one_bit_pattern_at_every_position(dtype):
    nans = rounded(torch.full((67,), -math.nan, dtype=torch.float64), dtype)
    assert len(set(map(tuple, nans.view(torch.uint8).reshape(67, -1).tolist()))) == 1
    assert nans.float().isnan().all()


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1 + 2.0**-8, "bfloat16", 1.0),
        (1 + 3 * 2.0**-8, "bfloat16", 1 + 2.0**-6),
        (2.0**-25, "float16", 0.0),
        (2.0**-24, "float16", 2.0**-24),
        (1e5, "float16", math.inf),
        (1e5, "float8_e4m3fn", 448.0),
        (-1e6, "float8_e5m2", -57344.0),
        (math.inf, "float8_e5m2", math.inf),
        (2.5, "int8", 2),
        (1e9, "int8", 127),
        (-math.inf, "int32", -(2**31)),
        (math.nan, "int64", 0),
        (1e30, "int64", 2**63 - 1024),
    ],
)
def test_rounding_is_to_nearest_even_and_saturates_where_stated(value, dtype, expected):
    result = rounded(torch.tensor([value], dtype=torch.float64), dtype)
    assert (result.double() if result.is_floating_point() else result).tolist() == [expected]


def test_infinity_becomes_nan_in_the_fp8_format_without_infinities():
    assert rounded(torch.tensor([math.inf], dtype=torch.float64), "float8_e4m3fn").float().isnan()


def test_structured_recipes_have_their_structure():
    assert (_draw("constant_rows").diff(dim=1) == 0).all()
    assert len(_draw("ties").unique()) <= 4
    steps = _draw("sorted").diff(dim=1)
    assert ((steps >= 0).all(1) | (steps <= 0).all(1)).all()
    assert (_draw("one_hot").sum(1) == 1).all()
    assert torch.linalg.matrix_rank(_draw("rank_one", dtype="float64"), rtol=1e-12) == 1
    assert (_draw("cancelling_pairs").sum(1).abs() < 1e-3).all()
    assert _draw("negative").max() < 0
    zero_rows = (_draw("zero_rows") == 0).all(1)
    assert zero_rows.any()
    sizes = _draw("mixed_amplitude").abs()
    assert sizes.max() > 100
    assert sizes[sizes > 0].min() < 1e-3
    large = _draw("large").abs()
    assert large.min() >= 30
    assert large.max() <= 1000


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_large_same_sign_varies_in_every_dtype(dtype):
    values = _draw("large_same_sign", dtype=dtype)
    assert len(values.unique()) > 2
    assert (values.sign() == values.sign()[0, 0]).all()


def test_exp_edge_passes_every_overflow_on_both_sides():
    values = torch.cat([_draw("exp_edge", seed=s).flatten() for s in range(6)])
    for edge in (11.09, 44.4, 88.7, 103.97):
        near = values[(values.abs() - edge).abs() < 1]
        assert (near.abs() > edge).any()
        assert (near.abs() < edge).any()
        assert (near < 0).any()
        assert (near > 0).any()


@pytest.mark.parametrize("recipe", RECIPES)
def test_kinds_hold_what_they_promise_under_every_recipe(recipe):
    positive = _draw(recipe, kind="positive")
    assert not (positive <= 0).any()
    assert not (_draw(recipe, kind="negative") > 0).any()
    assert not (_draw(recipe, kind="ascending").diff(dim=-1) < 0).any()
    falling = _draw(recipe, kind="descending")
    assert not (falling > 0).any()
    assert not (falling.diff(dim=-1) > 0).any()
    for kind, low in (("probability", 0), ("unit", -1)):
        values = _draw(recipe, kind=kind)
        assert not ((values < low) | (values > 1)).any()
    index = _draw(recipe, kind="index", shape=(9,), extent=5)
    assert index.dtype == torch.int64
    assert set(index.tolist()) <= set(range(5))


def test_an_index_reaches_both_edges_when_there_is_room():
    for seed in range(20):
        index = _draw("uniform", kind="index", shape=(2,), extent=1000, seed=seed)
        assert sorted(index.tolist()) == [0, 999]


def test_an_index_into_nothing_is_refused_by_name():
    with pytest.raises(InternalError, match="x: 3 indices into an extent of 0"):
        _draw("uniform", kind="index", shape=(3,), extent=0)


def test_integers_reach_both_ends_of_their_range():
    values = _draw("uniform", kind="int8", shape=(2, 2))
    assert values.dtype == torch.int8
    assert values.min() == -128
    assert values.max() == 127
    assert _draw("uniform", kind="int64").max() == 2**63 - 1
    assert _draw("uniform", kind="uint8", shape=(2, 2)).max() == 255


def test_both_halves_of_a_packed_byte_reach_both_ends_of_their_range():
    packed = _draw("uniform", kind="packed_int4")
    assert packed.dtype == torch.uint8
    for half in (packed & 15, packed >> 4):
        assert {0, 15} <= {*half.flatten().tolist()}
    assert _draw("ones", kind="packed_int4").unique().tolist() == [0x11]


def test_a_mask_covers_every_row_unless_the_recipe_says_otherwise():
    for seed in range(10):
        assert _draw("uniform", kind="mask", shape=(20, 2), seed=seed).any(1).all()
        assert not _draw("zero_rows", kind="mask", shape=(20, 2), seed=seed).any(1).all()


@pytest.mark.parametrize("limits", [(-1.0, 1.0), (0.001, math.inf), (-math.inf, 5.0), (0.5, 1e3)])
def test_real_values_stay_in_the_range_of_the_task(limits):
    for recipe in RECIPES:
        values = _draw(recipe, dtype="float64", limits=limits)
        assert not ((values < limits[0]) | (values > limits[1])).any(), recipe


def test_a_narrow_range_is_filled_rather_than_clamped_to_its_ends():
    values = _draw("uniform", limits=(-1.0, 1.0))
    assert (values.abs() == 1).float().mean() < 0.05


def test_weights_do_not_take_the_recipe_of_the_data():
    x, w = TensorSpec(name="x", dims=("M", "N")), TensorSpec(name="w", dims=("N",))
    y = TensorSpec(name="y", dims=("M", "N"))
    tensors = (x, y, w)
    assert [recipe_of("large_same_sign", t, tensors) for t in tensors] == [
        "large_same_sign",
        "large_same_sign",
        "small",
    ]
    assert [recipe_of("zeros", t, tensors) for t in tensors] == ["zeros", "uniform", "uniform"]
    assert [recipe_of("nan_injected", t, tensors) for t in tensors] == ["nan_injected"] * 3


def test_an_offset_fills_the_bias_alone():
    x = TensorSpec(name="x", dims=("M", "N"))
    ones = TensorSpec(name="gain", dims=("N",), kind="ones")
    bias, shift = (TensorSpec(name=name, dims=("N",)) for name in ("bias", "shift"))
    tensors = (x, ones, bias, shift)
    found = [recipe_of("common_offset", t, tensors) for t in tensors]
    assert found == ["small", "small", "common_offset", "small"]


def test_a_common_offset_is_one_number_and_channel_offsets_are_several_that_tf32_holds():
    assert _draw("common_offset").unique().tolist() == [4096.0]
    several = _draw("channel_offsets").unique()
    assert len(several) > 4
    assert (several % 256 == 0).all()


def test_a_scalar_tensor_and_an_empty_one_can_be_drawn():
    assert _draw("sorted", shape=()).shape == ()
    assert _draw("adversarial", shape=(0, 4), dtype="float8_e5m2").shape == (0, 4)


@pytest.mark.gpu
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_gives_the_same_bits_on_cuda(recipe):
    for dtype in (*FLOATS, "int8", "int64", "bool"):
        drawn = [
            draw(SPEC, (5, 77), dtype=dtype, recipe=recipe, rng=stream(2, "v", device=device)).cpu()
            for device in ("cpu", "cuda")
        ]
        assert torch.equal(drawn[0].view(torch.uint8), drawn[1].view(torch.uint8))
