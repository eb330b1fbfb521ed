"""Which elements are wrong: non-finite parity first, bounds per element."""

import pytest
import torch

from kerneltruth.oracle.wrong_elements import (
    each_rejected,
    mark,
    mark_exact,
    rejects,
    rejects_exact,
)

NAN, INF = float("nan"), float("inf")


def marked(got, want, bound=0.1):
    reference = torch.tensor(want, dtype=torch.float64)
    output = torch.tensor(got, dtype=torch.float32)
    allowed = torch.full_like(reference, bound)
    return mark(output, reference, allowed, reference.to(torch.float32))


def test_a_nan_in_the_place_of_a_number_is_wrong_whatever_the_bound():
    assert marked([NAN, 1.0], [2.0, 1.0], bound=1e9).nan_parity.tolist() == [True, False]


def test_an_infinity_of_the_other_sign_is_wrong():
    assert marked([-INF], [INF]).inf_parity.tolist() == [True]


def test_only_elements_over_their_bound_are_wrong():
    assert marked([1.05, 1.2], [1.0, 1.0]).wrong.tolist() == [False, True]


def test_an_unsettled_element_is_never_wrong():
    assert not marked([NAN, 7.0], [2.0, 1.0], bound=INF).wrong.any()


def rejected(how, got, want, bound=0.1):
    reference = torch.tensor(want, dtype=torch.float64)
    outputs = torch.tensor(got, dtype=torch.float32)
    allowed = torch.full_like(reference, bound)
    return how(outputs, reference, allowed, rounded=reference.to(torch.float32))


def test_rejecting_finds_what_is_marked():
    for got, want in (
        ([1.05], [1.0]),
        ([1.2], [1.0]),
        ([NAN], [NAN]),
        ([NAN], [1.0]),
        ([1.0], [INF]),
        ([INF], [INF]),
        ([NAN, 1.2], [NAN, 1.0]),
    ):
        assert rejected(rejects, got, want) == bool(marked(got, want).wrong.any()), (got, want)


def test_each_of_many_is_rejected_only_if_none_is_right():
    assert rejected(each_rejected, [[1.2, 1.0], [1.0, 1.2]], [1.0, 1.0])
    assert not rejected(each_rejected, [[1.2, 1.0], [1.0, 1.0]], [1.0, 1.0])


def test_what_is_not_finite_is_left_to_a_closer_look():
    assert not rejected(each_rejected, [[NAN]], [1.0])
    assert not rejected(each_rejected, [[1.0]], [INF])


@pytest.mark.parametrize(
    ("slack", "wrong"),
    [(None, [False, True, True]), ([0.0, 1.0, 1.0], [False, False, True])],
)
def test_integers_are_wrong_beyond_their_slack(slack, wrong):
    output, reference = torch.tensor([1, 3, 7]), torch.tensor([1, 2, 3])
    slack = None if slack is None else torch.tensor(slack, dtype=torch.float64)
    assert mark_exact(output, reference, slack).wrong.tolist() == wrong
    assert rejects_exact(output, reference, slack)
    assert not rejects_exact(reference, reference, slack)


def test_near_the_largest_value_rounding_decides_between_it_and_infinity():
    largest = torch.finfo(torch.float32).max
    near, far = marked([INF], [largest * (1 - 1e-9)], bound=1e31), marked([INF], [1.0])
    assert not near.wrong.any()
    assert far.wrong.all()
