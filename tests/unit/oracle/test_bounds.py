"""Bounds: what widens them, what unsettles an element, and what stays out of the arithmetic."""

import pytest
import torch
from scripted import MATMUL, RELU, SUM, case_of

from kerneltruth.errors import UserError
from kerneltruth.oracle.admissible import Implementation
from kerneltruth.oracle.bounds import (
    FACTOR,
    PART,
    SMALL,
    Policy,
    absolute_bound,
    integer_slack,
    spread_bound,
)

NAN, INF = float("nan"), float("inf")


def f64(values):
    return torch.tensor(values, dtype=torch.float64)


def says(*values, settles=False):
    return Implementation(name="test", outputs=(f64(list(values)),), settles=settles)


def bound_of(reference, *implementations, dtype="float32", declared=RELU, tf32=False, **more):
    return spread_bound(
        declared, case_of(declared), dtype, f64(reference), implementations, 0, tf32=tf32, **more
    )


def test_without_spread_the_bound_is_the_floor_and_grows_with_the_element():
    small, large = bound_of([1.0, 1000.0]).tolist()
    assert 0 < small < large < 0.01


def test_the_bound_of_an_element_is_wider_by_a_deviation_and_a_half():
    bound = bound_of([[1.0, 1.0]], says([1.5, 1.0]))
    assert float(bound[0, 0] - bound[0, 1]) == pytest.approx(FACTOR * 0.5)


def test_the_largest_deviation_counts_and_not_the_last():
    both = bound_of([1.0], says(1.5), says(1.25))
    assert torch.equal(both, bound_of([1.0], says(1.5)))


def test_a_neighbour_in_the_row_may_be_as_far_off():
    alone = bound_of([[1.0, 1.0], [1.0, 1.0]])
    near = bound_of([[1.0, 1.0], [1.0, 1.0]], says([1.5, 1.0], [1.0, 1.0]))
    assert near[0, 1] > alone[0, 1]
    assert near[1, 1] == alone[1, 1]


def test_more_summed_terms_widen_the_bound():
    few, many = (
        spread_bound(SUM, case_of(SUM, N=n), "float32", f64([1.0]), [says(1.5)], 0, tf32=False)
        for n in (4, 4096)
    )
    assert many > few


def test_tf32_widens_float32_and_no_other_dtype():
    assert bound_of([1.0], tf32=True) > bound_of([1.0])
    assert torch.equal(
        bound_of([1.0], dtype="bfloat16", tf32=True), bound_of([1.0], dtype="bfloat16")
    )


def test_where_a_settling_implementation_is_not_finite_nothing_is_settled():
    assert bound_of([1.0, 2.0], says(NAN, 2.0, settles=True)).isinf().tolist() == [True, False]


def test_where_a_perturbation_is_not_finite_the_others_make_the_bound():
    bound = bound_of([1.0, 2.0], says(NAN, 2.5), says(1.5, 2.0))
    assert bound.isfinite().all()
    assert bound[0] >= FACTOR * 0.5


def test_an_expected_infinity_is_settled():
    bound = bound_of([INF, 2.0], says(INF, 2.0, settles=True))
    assert bound.isfinite().all()


def test_a_reference_beyond_the_dtype_is_infinite_by_convention_and_settled():
    bound = bound_of([1e6], says(INF, settles=True), dtype="float16")
    assert bound.isfinite().all()


def test_where_a_right_result_may_be_no_number_nothing_is_settled_beyond_the_dtype_either():
    bound = bound_of([1e6, 1e6], says(NAN, INF, settles=True), dtype="float16")
    assert bound.isinf().tolist() == [True, False]


def test_an_element_whose_partial_sums_overflow_is_not_settled():
    bound = bound_of([1.0, 2.0], overflowing=torch.tensor([True, False]))
    assert bound.isinf().tolist() == [True, False]


def test_an_implementation_of_another_shape_says_nothing():
    assert torch.equal(bound_of([1.0], says(1.5, 2.5)), bound_of([1.0]))


def test_many_elements_have_the_bound_that_few_have():
    row = torch.linspace(1, 2, 8, dtype=torch.float64).repeat(SMALL // 8 + 1, 1)
    off = Implementation(name="test", outputs=(row * 1.001,), settles=True)
    many = spread_bound(RELU, case_of(RELU), "float32", row, [off], 0, tf32=False)
    off = Implementation(name="test", outputs=(row[:4] * 1.001,), settles=True)
    few = spread_bound(RELU, case_of(RELU), "float32", row[:4], [off], 0, tf32=False)
    assert torch.equal(many[:4], few)


def test_an_empty_output_has_an_empty_bound():
    assert bound_of([]).shape == (0,)


def test_integers_may_move_as_far_as_admissible_ones_do():
    reference = torch.tensor([5, 5, 5])
    moved = [
        Implementation(name=n, outputs=(torch.tensor(v),), settles=False)
        for n, v in (("a", [5, 6, 5]), ("b", [5, 3, 5]))
    ]
    assert integer_slack(reference, moved, 0).tolist() == [0.0, 2.0, 0.0]


def test_a_fixed_bound_is_the_published_tolerance_of_the_dtype():
    bound = absolute_bound(MATMUL, "float32", f64([1.0, 2.0]), Policy(method="fixed"))
    assert bound.tolist() == [1e-4, 1e-4]


def test_a_calibrated_bound_that_was_not_measured_is_refused():
    policy = Policy(method="calibrated", calibration={"relu/float32": 0.5})
    assert absolute_bound(RELU, "float32", f64([1.0]), policy).tolist() == [0.5]
    with pytest.raises(UserError, match="no calibrated bound for relu in float16"):
        absolute_bound(RELU, "float16", f64([1.0]), policy)


def test_an_unknown_method_is_refused():
    with pytest.raises(UserError, match="'exact'"):
        Policy(method="exact")


def test_a_bound_of_many_elements_is_that_of_its_rows():
    rng = torch.Generator().manual_seed(3)
    sizes = (5, 2000, 16)
    reference = torch.randn(sizes, generator=rng, dtype=torch.float64)
    off = reference + 0.01 * torch.randn(sizes, generator=rng, dtype=torch.float64)
    off[1, 2, 3] = NAN
    beyond = torch.rand(sizes, generator=rng) > 0.9

    def bound(part):
        given = [Implementation(name="test", outputs=(off[part],), settles=True)]
        case = (RELU, case_of(RELU), "float32", reference[part], given, 0)
        return spread_bound(*case, tf32=False, overflowing=beyond[part])

    assert reference[0].numel() < PART < reference.numel()
    whole = bound(slice(None))
    assert torch.equal(whole, torch.stack([bound(i) for i in range(5)]))
    assert int(whole.isinf().sum()) == int(beyond.sum()) + int(not beyond[1, 2, 3])


@pytest.mark.parametrize("terms", [1024, 16384])
def test_a_loop_that_adds_one_term_after_the_other_is_within_the_bound(terms):
    """Published kernels add a whole row in one float32 variable; PyTorch adds pairwise."""
    case = case_of(SUM, N=terms)
    for low in (-1.0, 0.0):
        rows = torch.empty(16, terms).uniform_(low, 1.0, generator=torch.Generator().manual_seed(0))
        looped = torch.zeros(16)
        for column in rows.unbind(1):
            looped = looped + column
        exact = rows.double().sum(1)
        given = [Implementation(name="pairwise", outputs=(rows.sum(1).double(),), settles=True)]
        bound = spread_bound(SUM, case, "float32", exact, given, 0, tf32=False)
        assert ((looped.double() - exact).abs() <= bound).all()
        # A mean of what is left out would be noticed: one term of average size.
        assert (bound < rows.abs().mean()).all()


def test_a_narrow_result_and_tf32_have_finer_partial_sums_and_no_wider_a_bound():
    def bounds_of(dtype, tf32):
        return [
            float(spread_bound(SUM, case_of(SUM, N=n), dtype, f64([1.0]), [], 0, tf32=tf32))
            for n in (16, 65536)
        ]

    for dtype, tf32 in (("float16", False), ("bfloat16", False), ("float32", True)):
        few, many = bounds_of(dtype, tf32)
        assert few == many
    few, many = bounds_of("float32", False)
    assert few < many
