"""Rates, pass@k, and tasks that nobody solves."""

from itertools import combinations

import numpy as np
import pytest
from results_for_tests import counted, result, timed

from kerneltruth.analysis.intervals import wilson
from kerneltruth.analysis.metrics import pass_at_k, pass_rates, rates, unsolved
from kerneltruth.documents.records import DtypeCount


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
    assert [row.method for row in rows] == ["a", "b", None]
    assert [counts(row.exe) for row in rows] == [(1, 2), (1, 1), (1, 1)]


def test_a_crossing_has_a_row_for_each_pair_that_occurs():
    results = [result(method="a"), result(method="b", category="Loss")]
    rows = rates(results, ("category", "method"))
    assert [(row.category, row.method) for row in rows] == [("Loss", "b"), ("Math", "a")]


def test_rounds_are_ordered_by_number():
    rows = rates([result(round=10), result(round=9), result(round=None)], ("round",))
    assert [row.round_label for row in rows] == ["9", "10", None]


def test_a_stage_that_no_run_had_has_no_rate():
    (row,) = rates([result(perf="not_tried"), result("b", "fail", perf="not_tried")])
    assert (counts(row.perf), row.perf.rate, row.perf.low, row.perf.high) == (
        (0, 2),
        None,
        None,
        None,
    )
    assert row.not_tried == {"call": 0, "exe": 0, "perf": 2}
    (mixed,) = rates([result(perf="not_tried"), result("b", timing=timed(2.0))])
    assert (counts(mixed.perf), mixed.perf.rate, mixed.not_tried["perf"]) == ((1, 2), 0.5, 1)


def test_several_answers_to_a_task_do_not_make_a_rate_surer():
    once = [result(f"t{i}", "pass" if i < 6 else "fail") for i in range(10)]
    often = [
        result(f"t{i}", "pass" if i < 6 else "fail", number=n) for i in range(10) for n in range(9)
    ]
    (few,), (many,) = rates(once), rates(often)
    assert (many.exe.low, many.exe.high) == pytest.approx((few.exe.low, few.exe.high))


@pytest.mark.parametrize("outcome", ["pass", "fail"])
def test_pass_at_k_has_an_interval_with_a_width_where_all_samples_are_alike(outcome):
    results = [result(f"t{i}", outcome, number=n) for i in range(20) for n in range(5)]
    for row in pass_rates(results, (1, 5)):
        right = 20 * (outcome == "pass")
        assert (row.value.low, row.value.high) == pytest.approx(wilson(right, 20))


def test_the_interval_of_pass_at_k_covers_it():
    rng = np.random.default_rng(2)
    hits = {1: 0, 3: 0}
    # Tasks are hard or easy: pass@1 is 1/2, pass@3 the mean of 1 - (1 - p)^3 of p ~ beta(1/2, 1/2).
    true = {1: 0.5, 3: 0.6875}
    for _ in range(200):
        results = [
            result(f"t{i}", "pass" if right else "fail", number=n)
            for i, p in enumerate(rng.beta(0.5, 0.5, 12))
            for n, right in enumerate(rng.random(4) < p)
        ]
        for row in pass_rates(results, (1, 3)):
            hits[row.k] += row.value.low <= true[row.k] <= row.value.high
    assert all(n / 200 >= 0.92 for n in hits.values())


def test_no_result_gives_a_row_of_nothing():
    (row,) = rates([])
    assert (row.attempts, row.exe.rate, row.exe.low) == (0, None, None)
    assert rates([], ("method",)) == ()


def test_an_attempt_fails_in_the_dtype_of_its_first_failure_and_is_open_in_others():
    results = [
        result(dtypes=counted(float32=0, float16=0)),
        result(outcome="fail", dtypes=counted(float32=1)),
        result(outcome="fail", dtypes=counted(float32=0, float16=2)),
        result(outcome="call:compile_error"),
    ]
    half, single = rates(results, ("dtype",))
    assert (half.dtype, half.attempts, single.dtype, single.attempts) == (
        "float16",
        4,
        "float32",
        4,
    )
    # Right in both, failed in the other, failed in this one, and never loaded.
    assert (counts(half.exe), counts(half.exe_most), counts(half.failed)) == (
        (1, 4),
        (2, 4),
        (2, 4),
    )
    assert (counts(single.exe), counts(single.exe_most), counts(single.failed)) == (
        (1, 4),
        (2, 4),
        (2, 4),
    )
    assert (half.stopped_before, single.stopped_before) == (1, 1)
    assert (counts(single.call), counts(half.call), counts(half.call_most)) == (
        (3, 4),
        (2, 4),
        (3, 4),
    )


def test_a_kernel_that_does_not_compile_in_one_dtype_is_not_known_to_fail_in_another():
    results = [
        result(dtypes=counted(float32=0, float16=0)),
        result(
            outcome="call:compile_error",
            dtypes={"float16": DtypeCount(cases=1, returned=0, failed=1)},
        ),
    ]
    half, single = rates(results, ("dtype",))
    assert (counts(half.failed), counts(half.call_most)) == ((1, 2), (1, 2))
    assert (counts(single.failed), counts(single.call_most)) == ((0, 2), (2, 2))


def test_a_dtype_that_no_attempt_came_to_is_open_for_all():
    results = [result(outcome="fail", dtypes=counted(float32=1), number=n) for n in range(3)]
    half, single = rates(results, ("dtype",), {"relu": ("float32", "float16")})
    assert (half.dtype, counts(half.exe), counts(half.exe_most)) == ("float16", (0, 3), (3, 3))
    assert (counts(half.failed), half.stopped_before) == ((0, 3), 3)
    assert counts(single.exe_most) == (0, 3)


def test_the_two_ends_of_a_rate_by_dtype_hold_what_one_end_alone_would_miss():
    """Kernels tried in one dtype after the other, which end at their first failure."""
    rng = np.random.default_rng(9)
    held, alone = 0, 0
    for _ in range(40):
        results = []
        for _ in range(150):
            # What is hard is hard in both.
            ease = rng.normal(0, 4)
            right = rng.random(2) < 1 / (1 + np.exp(-ease - np.array([1.0, -1.0])))
            order = rng.permutation(2)
            tried = order[:1] if not right[order[0]] else order
            dtypes = counted(**{("single", "half")[i]: int(not right[i]) for i in tried})
            outcome = "pass" if right.all() else "fail"
            results.append(result("relu", outcome, dtypes=dtypes))
        half, _ = rates(results, ("dtype",))
        held += half.exe.low <= TRUE_HALF <= half.exe_most.high
        came = [r.dtypes["half"].failed == 0 for r in results if "half" in r.dtypes]
        low, high = wilson(sum(came), len(came))
        alone += low <= TRUE_HALF <= high
    assert held == 40
    # The share among those that came to it alone, which ignores the others.
    assert alone < 20


# With endlessly many kernels: the mean of 1 / (1 + exp(-x)) for x normal about -1, 4 apart.
TRUE_HALF = 0.4096


def test_a_timed_dtype_counts_in_its_own_row():
    results = [result(dtypes=counted(float32=0), timing=timed(2.0, dtype="float32"))]
    (row,) = rates(results, ("method", "dtype", "category"))
    assert row.group(("method", "dtype", "category")) == ("one_shot", "float32", "Math")
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
    assert (fusion.category, counts(fusion.unsolved)) == ("Fusion", (1, 2))
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


def test_loading_compiling_and_calling_are_told_apart():
    results = [
        result("a", "pass", cases=5),
        # No Python: no case began.
        result("b", "call:compile_error", cases=0),
        # A kernel that does not compile.
        result("c", "call:compile_error", cases=1),
        result("d", "call:runtime_error", cases=1),
        # In another dtype only: the call stage passed.
        result("e", "compile_error", cases=4),
        result("f", "call:infra", cases=2),
    ]
    (row,) = rates(results)
    found = {name: getattr(row, name).numerator for name in ("load", "compile", "call", "exe")}
    assert found == {"load": 4, "compile": 3, "call": 2, "exe": 1}
    assert row.load.denominator == 6
