"""Rates, pass@k, and tasks that nobody solves."""

from itertools import combinations

import pytest
from results_for_tests import counted, result, timed

from kerneltruth.analysis.metrics import pass_at_k, pass_rates, rates, unsolved


def counts(rate):
    return rate.numerator, rate.denominator


def test_every_stage_counts_all_attempts():
    results = [
        result(outcome="pass", timing=timed(2.0)),
        result(outcome="fail"),
        result(outcome="call:crash"),
        result(outcome="call:infra"),
    ]
    (row,) = rates(results)
    assert (counts(row.call), counts(row.exe), counts(row.perf)) == ((2, 4), (1, 4), (1, 4))
    assert (row.attempts, row.tasks, row.not_judged) == (4, 1, 1)


def test_rates_are_broken_down_in_the_order_of_the_groups():
    results = [
        result(method="b"),
        result(method="a", outcome="fail"),
        result(method="a"),
        result(method=None),
    ]
    rows = rates(results, ("method",))
    assert [row.group for row in rows] == [("a",), ("b",), (None,)]
    assert [counts(row.exe) for row in rows] == [(1, 2), (1, 1), (1, 1)]


def test_a_crossing_has_a_row_for_each_pair_that_occurs():
    results = [result(method="a"), result(method="b", category="Loss")]
    rows = rates(results, ("category", "method"))
    assert [row.group for row in rows] == [("Loss", "b"), ("Math", "a")]


def test_rounds_are_ordered_by_number():
    rows = rates([result(round=10), result(round=9), result(round=None)], ("round",))
    assert [row.group for row in rows] == [("9",), ("10",), (None,)]


def test_no_result_gives_a_row_of_nothing():
    (row,) = rates([])
    assert (row.attempts, row.exe.rate, row.exe.low) == (0, None, None)
    assert rates([], ("method",)) == ()


def test_a_dtype_counts_the_attempts_that_came_to_it():
    results = [
        result(dtypes=counted(float32=0, float16=0)),
        result(outcome="fail", dtypes=counted(float32=1)),
        result(outcome="fail", dtypes=counted(float32=0, float16=2)),
        result(outcome="call:compile_error"),
    ]
    half, single = rates(results, ("dtype",))
    assert (half.group, half.attempts, counts(half.exe)) == (("float16",), 3, (1, 3))
    assert half.stopped_before == 1
    assert (single.group, single.attempts, counts(single.exe)) == (("float32",), 4, (2, 4))
    assert (counts(single.call), single.stopped_before) == ((3, 4), 0)


def test_a_dtype_stands_where_it_was_asked_for():
    results = [result(dtypes=counted(float32=0), timing=timed(2.0, dtype="float32"))]
    (row,) = rates(results, ("method", "dtype", "category"))
    assert row.group == ("one_shot", "float32", "Math")
    assert counts(row.perf) == (1, 1)


def by_enumeration(n, c, k):
    """The share of all choices of k of n samples that hold a correct one."""
    chosen = list(combinations([True] * c + [False] * (n - c), k))
    return sum(map(any, chosen)) / len(chosen)


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_at_k_is_the_share_of_choices_that_hold_a_correct_sample(n):
    for c in range(n + 1):
        for k in range(1, n + 1):
            assert pass_at_k(n=n, c=c, k=k) == pytest.approx(by_enumeration(n, c, k))


def test_pass_at_k_of_many_samples_is_exact():
    # The product form of Chen et al., 2021, for n=200, c=20, k=100.
    product = 1.0
    for i in range(181, 201):
        product *= 1 - 100 / i
    assert pass_at_k(n=200, c=20, k=100) == pytest.approx(1 - product, rel=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, 1, 4), (3, 1, 0), (0, 0, 1)])
def test_pass_at_k_refuses_what_cannot_be(n, c, k):
    with pytest.raises(ValueError, match="need 0 <= c <= n"):
        pass_at_k(n=n, c=c, k=k)


def test_pass_at_k_is_the_mean_over_tasks_that_have_k_samples():
    results = [
        *(result("a", "pass" if s == 0 else "fail", sample=s) for s in range(4)),
        *(result("b", "pass", sample=s) for s in range(4)),
        result("c", "fail", sample=0),
    ]
    one, two = pass_rates(results, (1, 2))
    assert one.value.value == pytest.approx((1 / 4 + 1 + 0) / 3)
    assert (one.tasks, one.short) == (3, 0)
    assert two.value.value == pytest.approx((1 / 2 + 1) / 2)
    assert (two.tasks, two.short) == (2, 1)


def test_a_sample_that_could_not_be_judged_is_no_failed_sample():
    results = [result("a"), result("a", "call:unsupported_here", number=1)]
    (row,) = pass_rates(results, (1,))
    assert (row.value.value, row.not_judged) == (1.0, 1)


def test_a_task_is_unsolved_where_every_method_fails_on_it():
    results = [
        result("a", "fail", method="x"),
        result("a", "call:crash", method="y"),
        result("b", "fail", method="x"),
        result("b", "pass", method="y"),
        result("c", "fail", method="x"),
    ]
    (row,) = unsolved(results)
    assert counts(row.unsolved) == (1, 2)
    assert (row.tasks, row.partial) == (("a",), 1)


def test_unsolved_tasks_are_counted_by_category():
    results = [
        result("a", "fail", category="Fusion"),
        result("b", "pass", category="Fusion"),
        result("c", "pass", category="Math"),
    ]
    fusion, math = unsolved(results, ("category",))
    assert (fusion.group, counts(fusion.unsolved)) == (("Fusion",), (1, 2))
    assert counts(math.unsolved) == (0, 1)


def test_a_method_that_could_not_be_judged_on_a_task_leaves_it_out():
    results = [
        result("a", "fail", method="x"),
        result("a", "call:unsupported_here", method="y"),
        result("b", "fail", method="x"),
        result("b", "fail", method="y"),
    ]
    (row,) = unsolved(results)
    assert (counts(row.unsolved), row.partial) == ((1, 1), 1)
