"""Ratios, times, slopes and noise floors from literal numbers, and against SciPy."""

import math

import numpy as np
import pytest
from scipy import stats

from kerneltruth.clock.statistics.summary import (
    SCATTER,
    SPENT,
    Block,
    Interval,
    Slope,
    agree,
    between_processes,
    enough,
    noise_floor,
    outcome,
    ratio_interval,
    slope,
    time_interval,
)
from kerneltruth.errors import InternalError

# What `enough` and `ratio_interval` make of it is the same for every seed; these draw the data.
RNG = np.random.default_rng


def blocks_of(logs):
    """Blocks with these log ratios."""
    return [Block(candidate_s=(1.0,), baseline_s=(math.exp(x),)) for x in logs]


def ratio(low, high):
    """An interval around its middle."""
    return Interval(estimate=math.sqrt(low * high), low=low, high=high)


def test_a_linear_drift_of_both_sides_cancels_within_an_exchange():
    # A B B A at 1, 2, 3, 4 percent above 10 us in logs.
    a1, b1, b2, a2 = (1e-5 * math.exp(0.01 * i) for i in range(1, 5))
    assert Block(candidate_s=(a1, a2), baseline_s=(b1, b2)).log_ratio == pytest.approx(0, abs=1e-12)


def test_a_block_of_three_exchanges_is_not_moved_by_a_disturbed_one():
    calm = 1e-5
    block = Block(candidate_s=(calm, calm, 1.0, calm, calm, calm), baseline_s=(2 * calm,) * 6)
    assert math.exp(block.log_ratio) == pytest.approx(2)


@pytest.mark.parametrize(
    ("candidate", "baseline"),
    [
        ((), ()),
        ((1.0,), (1.0, 1.0)),
        ((0.0,), (1.0,)),
        ((1.0,), (math.nan,)),
        ((math.inf,), (1.0,)),
    ],
)
def test_a_block_refuses_times_that_cannot_be(candidate, baseline):
    with pytest.raises(InternalError, match="block"):
        Block(candidate_s=candidate, baseline_s=baseline)


def test_a_candidate_of_half_the_time_has_the_ratio_two():
    interval = ratio_interval([Block(candidate_s=(1e-5, 1e-5), baseline_s=(2e-5, 2e-5))] * 8)
    assert (interval.low, interval.estimate, interval.high) == pytest.approx((2, 2, 2))


def test_the_interval_inverts_scipys_signed_rank_test():
    logs = RNG(1).normal(0.01, 0.01, 17)
    interval = ratio_interval(blocks_of(logs))
    alpha = SPENT * 0.05
    inside, outside = 1e-6, -1e-6
    for end, sign in ((interval.low, 1), (interval.high, -1)):
        within = stats.wilcoxon(logs - math.log(end) - sign * inside, mode="exact").pvalue
        without = stats.wilcoxon(logs - math.log(end) - sign * outside, mode="exact").pvalue
        assert without <= alpha < within


def test_the_estimate_is_the_median_of_all_averages_of_two():
    # Averages of two of 0, 1 and 5: 0, 0.5, 1, 2.5, 3, 5.
    assert ratio_interval(blocks_of([0, 1, 5])).estimate == pytest.approx(math.exp(1.75))


def test_six_blocks_end_at_their_extremes():
    logs = [-0.03, 0.01, 0.02, 0.04, -0.01, 0.05]
    interval = ratio_interval(blocks_of(logs))
    assert interval.low == pytest.approx(math.exp(-0.03))
    assert interval.high == pytest.approx(math.exp(0.05))


def test_fewer_than_six_blocks_have_the_wider_interval_of_normal_theory():
    logs = [0.0, 0.01, -0.01, 0.02, -0.02]
    interval = ratio_interval(blocks_of(logs))
    t = stats.t.ppf(1 - SPENT * 0.05 / 2, 4)
    assert interval.half_width == pytest.approx(t * np.std(logs, ddof=1) / math.sqrt(5))
    assert interval.half_width > max(logs)


def test_one_block_says_nothing_of_its_error():
    interval = ratio_interval(blocks_of([0.1]))
    assert (interval.low, interval.high) == (0, math.inf)
    assert interval.half_width == math.inf
    assert outcome(interval) == "tie"


def test_no_blocks_have_no_ratio():
    with pytest.raises(InternalError, match="no blocks"):
        ratio_interval([])


def test_a_noise_floor_and_half_of_the_scatter_widen_in_quadrature():
    logs = [-0.03, 0.03, 0.0, 0.01, -0.01, 0.0]
    bare = ratio_interval(blocks_of(logs))
    assert bare.half_width == pytest.approx(0.03)
    scatter = 0.03 * math.sqrt(6) / stats.norm.ppf(1 - SPENT * 0.05 / 2)
    interval = ratio_interval(blocks_of(logs), noise_floor=0.04)
    assert interval.estimate == bare.estimate == pytest.approx(1)
    wide = math.sqrt(0.03**2 + 0.04**2 + (SCATTER * scatter) ** 2)
    assert math.log(interval.high) == pytest.approx(wide)
    assert math.log(interval.low) == pytest.approx(-wide)
    assert between_processes(bare, 6, noise_floor=0.04) == interval


def test_the_scatter_of_many_blocks_is_their_standard_deviation():
    bare = ratio_interval(blocks_of(RNG(3).normal(0, 0.01, 200)))
    wide = between_processes(bare, 200, noise_floor=0.0)
    added = math.sqrt(wide.half_width**2 - bare.half_width**2)
    assert SCATTER == 0.5
    assert added == pytest.approx(0.005, rel=0.1)


def test_of_one_block_nothing_is_known_of_processes_either():
    interval = ratio_interval(blocks_of([0.1]), noise_floor=0.01)
    assert (interval.low, interval.high) == (0, math.inf)


def test_a_noise_floor_widens_even_blocks_that_all_agree():
    interval = ratio_interval(blocks_of([0.0] * 8), noise_floor=0.01)
    assert interval.half_width == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.011, 1.3, "faster"),
        (1.009, 1.3, "tie"),
        (0.998, 1.002, "tie"),
        (0.5, 2.0, "tie"),
        (0.9755, 0.9853, "slower"),
        (0.97, 0.9902, "tie"),
    ],
)
def test_only_an_interval_wholly_beyond_one_percent_is_a_difference(low, high, expected):
    assert outcome(ratio(low, high)) == expected


def test_faster_and_slower_are_each_others_mirror():
    faster = ratio(1.012, 1.02)
    assert outcome(faster) == "faster"
    assert outcome(ratio(1 / faster.high, 1 / faster.low)) == "slower"


def test_enough_looks_at_the_width_and_never_at_the_estimate():
    noise = RNG(3).normal(0, 0.005, 30)
    answers = {
        enough(blocks_of(noise[:n] + shift), precision=0.003)
        for shift in (0.0, 1.0, -0.7)
        for n in (30,)
    }
    assert answers == {True}
    assert not enough(blocks_of(noise[:10]), precision=0.003)


def test_seven_blocks_that_agree_are_not_enough():
    assert not enough(blocks_of([0.0] * 7), precision=0.01)
    assert enough(blocks_of([0.0] * 8), precision=0.01)


def test_the_median_time_lies_between_two_order_statistics():
    # n = 9: P(B < 2) = 10/512, so that the second from either end is the 95% interval's end.
    interval = time_interval([3e-6, 1e-6, 9e-6, 4e-6, 8e-6, 5e-6, 2e-6, 7e-6, 6e-6])
    assert (interval.low, interval.estimate, interval.high) == (2e-6, 5e-6, 8e-6)


def test_the_median_time_agrees_with_scipys_quantile_interval():
    times = RNG(5).lognormal(-11, 0.1, 40)
    theirs = stats.quantile_test(times, p=0.5).confidence_interval(0.95)
    ours = time_interval(times)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_three_times_have_a_wide_interval():
    interval = time_interval([1.0e-6, 1.1e-6, 0.9e-6])
    assert interval.low < 0.9e-6 < 1.1e-6 < interval.high


def test_times_of_zero_are_refused():
    with pytest.raises(InternalError, match="above 0"):
        time_interval([0.0, 1.0])


def test_nineteen_null_pairs_give_the_largest_lack_of_width():
    # The last one misses 1 by 0.05 where its own half-width is 0.03.
    missing = Interval(estimate=math.exp(0.05), low=math.exp(0.02), high=math.exp(0.08))
    floor = noise_floor([ratio(0.99, 1.01)] * 18 + [missing])
    assert floor == pytest.approx(0.04)
    assert missing.widened(floor).low == pytest.approx(1)


def test_null_pairs_that_all_hold_one_need_no_floor():
    assert noise_floor([ratio(0.99, 1.01)] * 40) == 0


def test_a_few_null_pairs_give_a_cautious_floor():
    estimates = [0.002, -0.001, 0.001, -0.002]
    null = [Interval(estimate=math.exp(x), low=0.9, high=1.1) for x in estimates]
    expected = stats.t.ppf(0.975, 4) * math.sqrt(np.mean(np.square(estimates)))
    assert noise_floor(null) == pytest.approx(expected)


def test_the_slope_of_a_line_is_exact():
    line = slope([20, 100, 400, 37], [1e-3 + 5e-5 * n for n in (20, 100, 400, 37)])
    assert line.per_call_s == pytest.approx(5e-5)


def test_the_slope_and_its_interval_are_scipys():
    rng = RNG(7)
    counts = rng.integers(20, 400, 25)
    seconds = 1e-3 + 5e-5 * counts + rng.normal(0, 1e-4, 25)
    ours = slope(counts.tolist(), seconds.tolist())
    theirs = stats.theilslopes(seconds, counts, alpha=0.95)
    assert ours.per_call_s == pytest.approx(theirs.slope)
    # SciPy rounds the places to the nearest; ours go outwards.
    assert ours.low == pytest.approx(theirs.low_slope, rel=2e-3)
    assert ours.high == pytest.approx(theirs.high_slope, rel=2e-3)
    assert ours.low <= theirs.low_slope
    assert ours.high >= theirs.high_slope


def test_a_hiccup_of_the_machine_does_not_move_the_slope():
    counts = [20, 50, 100, 150, 200, 250, 300, 400]
    seconds = [1e-3 + 5e-5 * n for n in counts]
    seconds[3] += 0.2
    assert slope(counts, seconds).per_call_s == pytest.approx(5e-5, rel=0.01)


def test_two_batches_are_a_slope_without_an_interval():
    line = slope([10, 20], [1.0, 2.0])
    assert (line.per_call_s, line.low, line.high) == (0.1, -math.inf, math.inf)


def test_equal_counts_have_no_slope():
    with pytest.raises(InternalError, match="different counts"):
        slope([5, 5], [1.0, 1.0])


def line_of(per_call_s):
    return Slope(per_call_s=per_call_s, low=per_call_s * 0.999, high=per_call_s * 1.001)


@pytest.mark.parametrize(
    ("events_s", "per_call_s", "expected"),
    [
        (49.6e-6, 47.9e-6, True),  # flushed events beside an unflushed slope, as measured
        (20e-6, 47.9e-6, False),  # events that claim less than half of what calls take
        (45e-6, 50e-6, True),  # a tenth and 1 us are granted
        (44e-6, 50e-6, False),
        (100e-6, 30e-6, True),  # memory-bound on cold caches
        (1e-3, 30e-6, False),  # most calls skip the work
    ],
)
def test_claimed_times_agree_with_the_slope_or_do_not(events_s, per_call_s, expected):
    assert agree(events_s, line_of(per_call_s)) is expected
