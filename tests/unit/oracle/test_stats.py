"""Error statistics: non-finite parity first, bounds per element, absent rather than zero."""

import torch

from kerneltruth.oracle.stats import compare

NAN, INF = float("nan"), float("inf")


def _compare(got, want, bound=0.1):
    reference = torch.tensor(want, dtype=torch.float64)
    output = torch.tensor(got, dtype=torch.float32)
    allowed = torch.full_like(reference, bound)
    return compare(output, reference, allowed, rounded=reference.to(torch.float32))


def test_a_nan_that_is_due_is_right_and_stays_out_of_the_arithmetic():
    found = _compare([NAN, 1.0], [NAN, 1.0])
    assert (found.stats.num_exceeding, found.stats.max_abs) == (0, 0.0)


def test_a_nan_in_the_place_of_a_number_is_wrong_whatever_the_bound():
    assert _compare([NAN, 1.0], [2.0, 1.0], bound=1e9).nan_parity.tolist() == [True, False]


def test_an_infinity_of_the_other_sign_is_wrong():
    assert _compare([-INF], [INF]).inf_parity.tolist() == [True]


def test_only_elements_over_their_bound_are_wrong():
    assert _compare([1.05, 1.2], [1.0, 1.0]).wrong.tolist() == [False, True]


def test_an_unsettled_element_is_never_wrong():
    assert not _compare([NAN, 7.0], [2.0, 1.0], bound=INF).wrong.any()


def test_what_was_not_measured_is_absent():
    assert _compare([NAN], [NAN]).stats.max_abs is None
