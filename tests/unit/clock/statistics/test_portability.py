"""What changes from run to run, from literal ratios."""

import math

import pytest

from kerneltruth.clock.statistics.portability import combined, portability
from kerneltruth.clock.statistics.summary import Interval


def ratio(estimate, half=0.005):
    """A ratio with its half-width in logs."""
    return Interval(
        estimate=estimate, low=estimate * math.exp(-half), high=estimate * math.exp(half)
    )


def test_a_kernel_of_one_speed_everywhere_has_a_spread_of_one():
    found = portability([{"k": {"big": ratio(1.5)}}, {"k": {"big": ratio(1.5)}}])
    kernel = found.kernels[0]
    assert (kernel.spread, kernel.differs, kernel.flips) == (1, False, False)
    assert found.within == {"1%": 1, "5%": 1, "10%": 1}


def test_speedups_are_compared_on_the_shapes_that_all_timed():
    one = {"k": {"small": ratio(9.0), "big": ratio(1.2), "huge": ratio(1.2)}}
    other = {"k": {"big": ratio(1.2), "huge": ratio(1.2)}}
    kernel = portability([one, other]).kernels[0]
    assert kernel.shapes == 2
    assert [s.ratio for s in kernel.speedups] == pytest.approx([1.2, 1.2])


def test_a_run_without_the_kernel_has_no_speedup_and_does_not_lessen_the_shapes():
    a = {"k": {"big": ratio(1.0)}}
    found = portability([a, {}, {"k": {"big": ratio(1.1)}}])
    assert [s and s.ratio for s in found.kernels[0].speedups] == pytest.approx([1.0, None, 1.1])
    assert found.timed == (1, 0, 1)


def test_kernels_that_one_run_alone_timed_are_not_shared():
    found = portability([{"k": {"big": ratio(1.0)}}, {"other": {"big": ratio(1.0)}}])
    assert found.kernels == ()
    assert found.spread.count == 0
    assert found.spread.median is None


def test_runs_without_a_common_shape_share_nothing():
    assert portability([{"k": {"a": ratio(1.0)}}, {"k": {"b": ratio(1.0)}}]).kernels == ()


def test_intervals_that_do_not_meet_differ():
    apart = portability([{"k": {"s": ratio(1.0)}}, {"k": {"s": ratio(1.02)}}])
    meeting = portability([{"k": {"s": ratio(1.0)}}, {"k": {"s": ratio(1.008)}}])
    assert (apart.differ, meeting.differ) == (1, 0)
    assert (apart.within["1%"], meeting.within["1%"]) == (0, 1)


def test_faster_here_and_slower_there_is_a_flip():
    flip = portability([{"k": {"s": ratio(1.2)}}, {"k": {"s": ratio(0.8)}}])
    tie = portability([{"k": {"s": ratio(1.2)}}, {"k": {"s": ratio(1.0)}}])
    assert (flip.flips, tie.flips) == (1, 0)


def test_the_largest_spread_comes_first():
    one = {"a": {"s": ratio(1.0)}, "b": {"s": ratio(1.0)}}
    other = {"a": {"s": ratio(1.1)}, "b": {"s": ratio(3.0)}}
    assert [k.name for k in portability([one, other]).kernels] == ["b", "a"]


def test_each_run_has_its_distribution():
    one = {str(i): {"s": ratio(float(i))} for i in range(1, 12)}
    found = portability([one, one])
    first = found.speedups[0]
    assert first.count == 11
    assert [first.least, first.p10, first.median, first.most] == pytest.approx([1, 2, 6, 11])


def test_independent_ratios_combine_in_quadrature():
    mean = combined([ratio(2.0, 0.03), ratio(0.5, 0.04)])
    assert mean.estimate == pytest.approx(1)
    assert math.log(mean.high) == pytest.approx(0.025)
    assert math.log(mean.low) == pytest.approx(-0.025)


def test_a_ratio_without_an_interval_never_differs_nor_flips():
    def anywhere(estimate):
        return {"k": {"s": Interval(estimate=estimate, low=0.0, high=math.inf)}}

    kernel = portability([anywhere(2.0), anywhere(0.5)]).kernels[0]
    assert (kernel.spread, kernel.differs, kernel.flips) == (4, False, False)
