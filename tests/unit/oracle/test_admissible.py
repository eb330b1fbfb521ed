"""Admissible implementations: which arithmetics a correct kernel may use, and what they move."""

import pytest
import torch
from scripted import MATMUL, RELU, SUM, declare

from kerneltruth.oracle.admissible import (
    MOVES,
    beyond_range,
    compute_dtype,
    implementations,
    overflowing,
)
from kerneltruth.oracle.reference import quietly
from kerneltruth.tasks.spec import Output

X = torch.linspace(-3, 3, 15).reshape(3, 5)


def results_by_name(declared, tensors, working="float32", *, tf32=False, seed=7):
    with quietly():
        given = implementations(declared, working, tensors, {}, seed=seed, tf32=tf32)
        return {i.name: i for i in given}


IDENTITY = declare("same(x[M, N])", lambda x: x.clone())


def moved(name, x, **more):
    return results_by_name(IDENTITY, {"x": x}, **more)[name].outputs[0]


def test_narrow_formats_are_computed_in_float32():
    assert compute_dtype("bfloat16") == "float32"
    assert compute_dtype("float64") == "float64"


def test_a_half_kernel_may_compute_in_float32_or_in_half():
    names = set(results_by_name(RELU, {"x": X.half()}, "float16"))
    assert {"float32", "float16"} <= names
    assert "float16" not in results_by_name(RELU, {"x": X}, "float32")


def test_only_a_careful_implementation_settles_an_element():
    by_name = results_by_name(RELU, {"x": X.half()}, "float16")
    assert by_name["float32"].settles
    assert not any(by_name[name].settles for name in ("float16", *MOVES))


def test_up_and_down_move_every_element_by_one_ulp_of_itself():
    exact = X.double()
    assert torch.equal(moved("up", X), exact * (1 + 2**-23))
    assert torch.equal(moved("down", X), exact * (1 - 2**-23))


def test_signs_move_each_element_by_one_ulp_up_or_down():
    ones = torch.ones(40, 25)
    steps = (moved("signs-0", ones) - 1) * 2**23
    assert set(steps.unique().tolist()) == {-1.0, 1.0}
    assert not torch.equal(moved("signs-0", ones), moved("signs-1", ones))


def test_shares_move_each_element_by_less_than_an_ulp():
    ones = torch.ones(40, 25)
    steps = (moved("between-0", ones) - 1) * 2**23
    assert steps.abs().max() <= 1
    assert len(steps.unique()) > 500


def test_the_same_seed_moves_alike_and_another_does_not():
    assert torch.equal(moved("signs-0", X), moved("signs-0", X))
    assert not torch.equal(moved("signs-0", X), moved("signs-0", X, seed=8))


def test_two_inputs_do_not_move_alike():
    both = declare("both(x[M, N], y[M, N])", lambda x, y: (x, y), outputs=(Output(), Output()))
    ones = torch.ones(3, 5)
    x, y = results_by_name(both, {"x": ones, "y": ones})["signs-0"].outputs
    assert not torch.equal(x, y)


def test_integer_inputs_are_not_moved():
    taken = declare("taken(x[M, N], i[M]: index(N))", lambda x, i: x[:, i])
    index = torch.tensor([0, 2, 4])
    got = results_by_name(taken, {"x": X, "i": index})["up"].outputs[0]
    assert torch.equal(got, X.double()[:, index] * (1 + 2**-23))


def test_subnormal_inputs_are_flushed_once():
    tiny = torch.tensor([[2.0**-140, 1.0, 0.0]])
    flushed = results_by_name(IDENTITY, {"x": tiny})["flushed"]
    assert flushed.outputs[0].tolist() == [[0.0, 1.0, 0.0]]
    assert flushed.settles
    assert "flushed" not in results_by_name(IDENTITY, {"x": X})


def test_a_contracted_dim_is_summed_in_the_opposite_order_too():
    a, b = torch.rand(3, 64), torch.rand(64, 5)
    by_name = results_by_name(MATMUL, {"a": a, "b": b})
    assert torch.allclose(by_name["flipped-K"].outputs[0], a.double() @ b.double(), rtol=1e-4)


def test_flipping_says_nothing_where_it_changes_the_exact_result():
    first = declare(
        "first(a[M, K], b[K, N])",
        lambda a, b: a[:, :1] * b[:1],
        {"M": "batch", "N": "channel", "K": "contracted"},
        benchmark={"M": 3, "N": 5, "K": 4},
    )
    given = {"a": torch.rand(3, 4), "b": torch.rand(4, 5)}
    assert "flipped-K" not in results_by_name(first, given)


def test_tf32_cuts_the_inputs_of_a_float32_product_if_the_policy_admits_it():
    a, b = torch.full((1, 1), 1 + 2**-11 + 2**-12), torch.ones(1, 1)
    names = ("tf32-truncated", "tf32-rounded")
    by_name = results_by_name(MATMUL, {"a": a, "b": b}, tf32=True)
    assert [by_name[n].outputs[0].item() for n in names] == [1.0, 1 + 2**-10]
    assert not set(names) & set(results_by_name(MATMUL, {"a": a, "b": b}))
    assert not set(names) & set(results_by_name(RELU, {"x": X}, tf32=True))


def test_a_further_formula_of_the_task_is_one_implementation():
    declared = declare("relu(x[M, N])", torch.relu, admissible=(lambda x: x.clamp(min=0.5),))
    got = results_by_name(declared, {"x": X})["formula-0"].outputs[0]
    assert got.min() == 0.5


def test_what_torch_cannot_compute_in_a_dtype_is_left_out():
    def picky(x):
        if x.dtype == torch.float16:
            raise NotImplementedError("not for half")
        return x

    assert "float16" not in results_by_name(
        declare("picky(x[M, N])", picky), {"x": X.half()}, "float16"
    )


def test_a_reference_that_writes_its_input_spoils_no_other_evaluation():
    in_place = declare("spoil(x[M, N])", lambda x: x.mul_(2))
    by_name = results_by_name(in_place, {"x": X})
    assert torch.equal(by_name["up"].outputs[0], X.double() * (1 + 2**-23) * 2)
    assert torch.equal(by_name["float32"].outputs[0], (X * 2).double())


def test_a_rounded_integer_moves_with_a_nudge_of_all_but_the_largest():
    rounding = declare(
        "quantize(x[M, N])",
        lambda x: x.round().to(torch.int32),
        outputs=(Output(dtype="int32", compare="bound"),),
    )
    tie = torch.tensor([[2.5, 100.5]])
    by_name = results_by_name(rounding, {"x": tie})
    assert by_name["nudged-up"].outputs[0].tolist() == [[3, 100]]
    assert by_name["nudged-down"].outputs[0].tolist() == [[2, 100]]
    assert "nudged-up" not in results_by_name(RELU, {"x": X})


@pytest.mark.parametrize(("value", "expected"), [(1e3, None), (1e38, [True, False])])
def test_sums_beyond_the_range_of_float32_depend_on_their_order(value, expected):
    x = torch.tensor([[value, value, -value, -value], [value, 0.0, 0.0, 0.0]])
    with quietly():
        marked = overflowing(SUM, "float32", {"x": x}, {})
    assert (marked if marked is None else marked[0].tolist()) == expected


def test_without_a_sum_nothing_overflows_by_its_order():
    with quietly():
        assert overflowing(RELU, "float32", {"x": torch.tensor([[3e38]])}, {}) is None


def test_only_exact_results_beyond_the_range_of_the_computing_precision_are_beyond_it():
    truth = torch.tensor([[1e38, 1e39, -1e300, torch.inf, torch.nan]], dtype=torch.float64)
    (marked,) = beyond_range((truth,), "float16")
    assert marked.tolist() == [[False, True, True, False, False]]
    assert beyond_range((truth,), "float64") is None
    assert beyond_range((truth[:, :1], torch.tensor([2])), "float32") is None
