"""Error statistics: what is not finite stays out, absent rather than zero."""

import pytest
import torch

from kerneltruth.oracle.stats import compare

NAN, INF = float("nan"), float("inf")


def _compare(got, want, bound=0.1):
    reference = torch.tensor(want, dtype=torch.float64)
    output = torch.tensor(got, dtype=torch.float32)
    allowed = torch.full_like(reference, bound)
    return compare(output, reference, allowed, rounded=reference.to(torch.float32))


def test_an_expected_nan_is_right_and_stays_out_of_the_arithmetic():
    found = _compare([NAN, 1.0], [NAN, 1.0])
    assert (found.stats.num_exceeding, found.stats.max_abs) == (0, 0.0)


def test_what_was_not_measured_is_absent():
    assert _compare([NAN], [NAN]).stats.max_abs is None


def test_statistics_leave_out_what_is_not_finite_and_keep_the_rest():
    whole, part = (
        _compare([1.5, 2.0, 5.0], [1.0, 2.0, 4.0]),
        _compare([1.5, NAN, 2.0, 5.0], [1.0, NAN, 2.0, 4.0]),
    )
    same = ("max_abs", "mean_abs", "p50_abs", "p90_abs", "max_rel", "max_ulp", "max_bound_ratio")
    for name in same:
        assert getattr(whole.stats, name) == getattr(part.stats, name)
    assert (whole.stats.max_abs, whole.stats.mean_abs, whole.stats.p50_abs) == (1.0, 0.5, 0.5)
    assert (whole.stats.max_rel, whole.stats.mean_rel) == (0.5, 0.25)
    assert whole.stats.worst_index == (2,)


def test_an_error_relative_to_zero_is_not_measured():
    assert _compare([0.5, 2.0], [0.0, 1.0]).stats.max_rel == 1.0


def test_a_ratio_to_an_infinite_bound_or_to_none_is_not_measured():
    assert _compare([1.5], [1.0], bound=INF).stats.max_bound_ratio is None
    assert _compare([1.5], [1.0], bound=0.0).stats.max_bound_ratio is None
    assert _compare([1.5], [1.0], bound=0.25).stats.max_bound_ratio == 2.0


@pytest.mark.parametrize("odd", [None, NAN, INF], ids=["finite", "nan", "infinite"])
def test_many_elements_are_compared_in_parts_with_the_same_outcome(odd):
    rng = torch.Generator().manual_seed(3)
    reference = torch.randn(7, 30, generator=rng, dtype=torch.float64)
    rounded = reference.to(torch.float32)
    output = rounded + 0.2 * torch.randn(7, 30, generator=rng)
    bound = torch.rand(7, 1, generator=rng, dtype=torch.float64).expand(7, 30)
    if odd is not None:
        output[4, 5], output[2, 2] = odd, -INF
    whole = compare(output, reference, bound, rounded=rounded)
    parts = compare(output, reference, bound, rounded=rounded, part=32)
    for one, other in ((whole.wrong, parts.wrong), (whole.nan_parity, parts.nan_parity)):
        assert torch.equal(one, other)
    assert torch.equal(whole.inf_parity, parts.inf_parity)
    for name in whole.stats.__struct_fields__:
        assert getattr(parts.stats, name) == pytest.approx(getattr(whole.stats, name)), name
