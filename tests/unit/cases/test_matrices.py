"""Structured matrices: what solvers and decompositions are given."""

import pytest
import torch

from kerneltruth.cases.matrices import matrix
from kerneltruth.cases.philox import stream
from kerneltruth.cases.values import draw
from kerneltruth.errors import InternalError
from kerneltruth.tasks.spec import TensorSpec


def draw_matrices(kind, n=9, recipe="uniform", dtype="float32", batch=(2,), form=None):
    spec = TensorSpec(name="A", dims=("B", "N", "N"), kind=kind)
    rng = stream(7, kind, recipe)
    return draw(spec, (*batch, n, n), dtype=dtype, recipe=recipe, rng=rng, form=form).double()


RECIPES = ("uniform", "zeros", "ones", "large", "rank_one", "negative", "mixed_amplitude")


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("n", [1, 2, 33])
@pytest.mark.parametrize("kind", ["spd", "invertible", "lower"])
def test_they_are_well_conditioned_whatever_the_recipe(kind, n, recipe):
    a = draw_matrices(kind, n, recipe)
    assert float(torch.linalg.cond(a).max()) < 2000


@pytest.mark.parametrize("kind", ["symmetric", "spd"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_symmetric_ones_equal_their_transpose_bit_for_bit(kind, dtype):
    a = draw_matrices(kind, dtype=dtype)
    assert torch.equal(a, a.mT)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_positive_definite_one_has_positive_eigenvalues(recipe):
    assert bool((torch.linalg.eigvalsh(draw_matrices("spd", 17, recipe)) > 0).all())


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("kind", ["spd", "indefinite", "matrix"])
def test_a_spread_one_is_dense_and_moderately_ill_conditioned(kind, recipe):
    a = draw_matrices(kind, 33, recipe, form="spread")
    condition = torch.linalg.cond(a)
    assert bool(((condition > 500) & (condition < 4000)).all())
    assert float((a == 0).double().mean()) < 0.5
    if kind != "matrix":
        assert torch.equal(a, a.mT)


@pytest.mark.parametrize("recipe", RECIPES)
def test_an_indefinite_one_has_eigenvalues_of_both_signs_and_zeros_on_its_diagonal(recipe):
    a = draw_matrices("indefinite", 17, recipe)
    values = torch.linalg.eigvalsh(a)
    assert bool((values.amin(-1) < 0).all() & (values.amax(-1) > 0).all())
    assert bool((a.diagonal(dim1=-2, dim2=-1) == 0).any())
    assert float(torch.linalg.cond(a).max()) < 2000


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("shape", [(1, 1), (12, 7), (7, 12), (33, 33)])
def test_a_flat_one_has_singular_values_of_one_size_and_a_deficient_one_half_of_them(recipe, shape):
    spec = TensorSpec(name="A", dims=("M", "N"), kind="matrix")
    rng = stream(7, recipe)
    how = {"dtype": "float32", "recipe": recipe, "rng": rng}
    flat = torch.linalg.svdvals(draw(spec, shape, form="flat", **how).double())
    assert torch.allclose((flat * 2).round() / 2, flat, atol=1e-6)
    assert bool(((flat > 0.9) & (flat < 2.1)).all())
    halved = draw(spec, shape, form="deficient", **how).double()
    assert int(torch.linalg.matrix_rank(halved, rtol=1e-14)) == (min(shape) + 1) // 2


def test_a_steep_one_is_ill_conditioned():
    assert bool((torch.linalg.cond(draw_matrices("matrix", 33, form="steep")) > 30000).all())


@pytest.mark.parametrize("form", ["flat", "deficient"])
def test_what_is_not_a_number_stays(form):
    x = torch.zeros(3, 3, dtype=torch.float64)
    x[1, 2] = torch.nan
    assert bool(matrix("matrix", x, stream(0, "x"), form).isnan().any())


def test_an_ordered_one_has_its_largest_elements_on_the_diagonal():
    a = draw_matrices("matrix", form="ordered")
    assert torch.equal(a.abs().argmax(-1), torch.arange(9).expand(2, 9))


def test_a_raw_one_keeps_the_values():
    assert torch.equal(
        draw_matrices("matrix", recipe="ones", form="raw"), torch.ones(2, 9, 9).double()
    )


def test_an_upper_one_has_nothing_below_the_diagonal():
    a = draw_matrices("triangular", form="upper")
    assert torch.equal(a, a.triu())


def test_a_form_that_a_kind_lacks_is_refused():
    with pytest.raises(InternalError, match="no form 'upper'"):
        draw_matrices("spd", form="upper")


def test_a_lower_one_has_nothing_above_the_diagonal():
    a = draw_matrices("lower")
    assert torch.equal(a, a.tril())
    assert not torch.equal(a, a.mT.tril())


def test_an_invertible_one_needs_pivoting():
    diagonals = torch.stack(
        [draw_matrices("invertible", 9, r).diagonal(dim1=-2, dim2=-1) for r in RECIPES]
    )
    assert bool((diagonals.abs() < 0.5).any())


def test_only_square_matrices_have_a_structure():
    with pytest.raises(InternalError, match="square"):
        matrix("spd", torch.zeros(2, 3), stream(0, "x"))


def test_the_same_stream_gives_the_same_bits():
    assert torch.equal(draw_matrices("invertible"), draw_matrices("invertible"))


def test_signs_are_minus_one_and_one():
    spec = TensorSpec(name="s", dims=("N",), kind="sign")
    values = draw(spec, (64,), dtype="float16", recipe="uniform", rng=stream(1, "s"))
    assert set(values.tolist()) == {-1.0, 1.0}


def test_an_index_or_holds_indices_and_the_value_that_means_none():
    spec = TensorSpec(name="t", dims=("N",), kind="index_or", extent="C", other="-100")
    rng = stream(1, "t")
    values = draw(spec, (64,), dtype="float32", recipe="uniform", rng=rng, extent=5, other=-100)
    assert values.dtype == torch.int64
    assert {-100, 0, 4} <= set(values.tolist()) <= {-100, 0, 1, 2, 3, 4}


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64", "uint8"])
def test_integers_reach_both_ends_of_their_dtype(dtype):
    spec = TensorSpec(name="x", dims=("N",), kind="integer")
    values = draw(spec, (64,), dtype=dtype, recipe="uniform", rng=stream(1, dtype))
    info = torch.iinfo(getattr(torch, dtype))
    high = info.max if dtype != "int64" else int(values.max())
    assert (int(values.min()), int(values.max())) == (info.min, high)


def test_integers_may_be_bools():
    spec = TensorSpec(name="x", dims=("N",), kind="integer")
    values = draw(spec, (64,), dtype="bool", recipe="uniform", rng=stream(1, "b"))
    assert set(values.tolist()) == {True, False}


@pytest.mark.parametrize("n", [1, 2, 9, 64, 257])
def test_a_determinant_near_one_is_near_one_at_any_size_and_has_either_sign(n):
    a = draw_matrices("matrix", n, batch=(16,), form="near_one")
    det = torch.linalg.det(a)
    assert ((det.abs() > 0.2) & (det.abs() < 5)).all()
    if n > 1:
        assert len(det.sign().unique()) == 2
    values = torch.linalg.svdvals(a)
    assert ((values > 0.3) & (values < 3)).all()
