"""Speedups, fast_p, shares slower, and the speed of light."""

import math

import pytest
from msgspec.structs import replace
from results_for_tests import ratio, result, timed

from kerneltruth.analysis.results import TimedShape, timing
from kerneltruth.analysis.speeds import (
    baselines_of,
    efficiencies,
    efficiency,
    fast_p,
    speedups,
)
from kerneltruth.clock.statistics.summary import Interval, outcome


def of(task, *ratios, **options):
    return result(task, timing=timed(*ratios, **options))


def test_a_speedup_is_the_geometric_mean_over_shapes():
    assert of("a", 1.0, 4.0).speedup() == pytest.approx(2.0)


def test_a_wrong_kernel_has_no_speedup():
    assert replace(of("a", 3.0), exe="fail", verdict="fail").speedup() is None


def test_the_interval_of_a_speedup_narrows_with_the_shapes():
    one, four = of("a", 2.0, width=0.1).against(), of("a", *[2.0] * 4, width=0.1).against()
    assert (one.low, one.high) == pytest.approx((2 / 1.1, 2 * 1.1))
    # Independent shapes: half the width, on the scale of logarithms, of four of them.
    assert math.log(four.high / 2) == pytest.approx(math.log(1.1) / 2)


def test_a_shape_without_an_interval_leaves_the_speedup_without_one():
    shapes = [
        *timed(2.0, width=0.1).shapes,
        *timed(2.0).shapes,
    ]
    found = timing(shapes).against["eager"]
    assert (found.speedup, found.low, found.outcome) == (pytest.approx(2.0), None, None)


@pytest.mark.parametrize(
    ("value", "width", "expected"),
    [
        (1.2, 0.05, "faster"),
        (1.2, 0.25, "tie"),
        (0.8, 0.05, "slower"),
        (0.8, 0.3, "tie"),
        (1.009, 0.0001, "tie"),
        (1.011, 0.0001, "faster"),
        (1 / 1.009, 0.0001, "tie"),
        (1 / 1.011, 0.0001, "slower"),
    ],
)
def test_a_kernel_stands_as_the_clock_would_have_it(value, width, expected):
    found = timed(value, width=width).against["eager"]
    assert found.outcome == expected
    assert outcome(Interval(estimate=value, low=found.low, high=found.high)) == expected


def test_speedups_tell_how_many_are_slower_and_how_surely():
    results = [
        of("a", 0.5, width=0.01),
        of("b", 0.99, width=0.1),
        of("c", 2.0, width=0.01),
        result("d"),
        result("e", "fail"),
    ]
    (row,) = speedups(results)
    assert (row.correct, row.timed) == (4, 3)
    assert (row.slower.numerator, row.slower.denominator) == (2, 3)
    assert (row.surely_slower, row.ties, row.surely_faster) == (1, 1, 1)
    assert row.mean.value == pytest.approx((0.5 * 0.99 * 2.0) ** (1 / 3))
    assert row.median == pytest.approx(0.99)


def test_the_mean_speedup_resamples_tasks_not_samples():
    alike = [of("a", 2.0), of("a", 2.0), of("b", 1.0), of("b", 1.0)]
    (row,) = speedups(alike)
    assert (row.mean.count, row.mean.clusters) == (4, 2)
    # Two tasks: Student's interval with one degree of freedom.
    half = 12.706 * math.log(2) / 2
    ends = math.sqrt(2) * math.exp(-half), math.sqrt(2) * math.exp(half)
    assert (row.mean.low, row.mean.high) == pytest.approx(ends, rel=1e-3)


def test_fast_p_is_strict_and_its_denominator_is_every_answer():
    results = [of("a", 1.0), of("b", 1.5), of("c", 3.0), result("d", "fail"), result("e")]
    zero, one, two = fast_p(results, (0.0, 1.0, 2.0))
    assert (zero.share.numerator, zero.share.denominator) == (4, 5)
    assert (one.share.numerator, two.share.numerator) == (2, 1)
    assert one.untimed == 1


def test_fast_p_agrees_with_kernelbenchs_definition():
    # Section 3 of its paper: the mean over tasks of 1(correct and speedup > p).
    speeds = [0.3, 0.9, 1.0, 1.01, 1.7, 2.0, 5.0]
    results = [of(f"t{i}", s) for i, s in enumerate(speeds)]
    results += [result("wrong", "fail"), result("dead", "call:crash")]
    for p in (0.5, 0.8, 1.0, 1.5, 2.0):
        (row,) = fast_p(results, (p,))
        assert row.share.rate == pytest.approx(sum(s > p for s in speeds) / 9)


def test_an_answer_is_surely_faster_where_its_whole_interval_is():
    results = [of("a", 1.5, width=0.01), of("b", 1.5, width=0.9)]
    (row,) = fast_p(results, (1.2,))
    assert (row.share.numerator, row.surely) == (2, 1)


def test_where_nothing_was_timed_fast_p_is_unknown_except_at_zero():
    zero, one = fast_p([result("a"), result("b", "fail")], (0.0, 1.0))
    assert zero.share.rate == 0.5
    assert (one.share.rate, one.share.denominator, one.untimed) == (None, 2, 1)


def test_where_nothing_is_right_fast_p_is_zero():
    (row,) = fast_p([result("a", "fail")], (1.0,))
    assert row.share.rate == 0


def test_each_baseline_has_its_own_speedups():
    results = [of("a", 2.0, compile=(0.5,))]
    assert baselines_of(results) == ("eager", "compile")
    (eager,), (compiled,) = speedups(results), speedups(results, "compile")
    assert (eager.mean.value, compiled.mean.value) == pytest.approx((2.0, 0.5))


def light(*values):
    shapes = [
        TimedShape(
            case=f"N={i}",
            dtype="float32",
            candidate_us=10.0,
            low=None,
            high=None,
            baselines={"eager": ratio(1.0)},
            efficiency=value,
            bound_by="memory" if value else None,
        )
        for i, value in enumerate(values)
    ]
    return result(timing=timing(shapes))


def test_efficiency_is_the_geometric_mean_over_the_shapes_that_have_one():
    assert efficiency(light(0.2, 0.8, None)) == pytest.approx(0.4)
    assert efficiency(light(None)) is None
    assert efficiency(result()) is None


def test_efficiencies_count_what_bounds_the_shapes():
    (row,) = efficiencies([light(0.25, None), light(0.5), result("x", "fail")])
    assert (row.known, row.bound_by) == (2, {"memory": 2})
    assert row.median == pytest.approx(0.375)
