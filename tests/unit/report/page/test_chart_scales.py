"""Places on a chart."""

from itertools import pairwise

import pytest

from kerneltruth.report.page.scales import LogScale, bars, dots, speed_scale


def test_equal_factors_are_equally_far_apart():
    scale = LogScale(low=0.5, high=2.0)
    assert [scale.at(f) for f in (0.5, 1.0, 2.0)] == [0.0, 50.0, 100.0]


def test_what_lies_beyond_stands_at_the_edge():
    scale = LogScale(low=0.5, high=2.0)
    assert [scale.at(f) for f in (0.001, 1000.0)] == [0.0, 100.0]


@pytest.mark.parametrize("ends", [(0.0, 1.0), (2.0, 1.0), (1.0, 1.0)])
def test_a_scale_goes_up_between_positive_ends(ends):
    with pytest.raises(ValueError, match="0 < low < high"):
        LogScale(low=ends[0], high=ends[1])


def test_a_speed_scale_always_shows_1():
    ticks = speed_scale([3.0, 4.0]).ticks()
    assert [tick.label for tick in ticks if tick.one] == ["1\u00d7"]


def test_one_extreme_kernel_does_not_squeeze_all_others_together():
    assert speed_scale([1.0, 1e6]).high < 100


def test_a_scale_of_nothing_is_a_scale():
    assert speed_scale([]).low < 1 < speed_scale([]).high


def test_few_factors_are_dots_and_many_are_bars():
    scale = LogScale(low=0.5, high=2.0)
    assert dots([2.0, 0.5], scale) == [0.0, 100.0]
    assert bars([2.0, 0.5], scale) == []
    many = [0.5] * 30 + [2.0] * 60
    assert dots(many, scale) == []
    assert [bar.height for bar in bars(many, scale)] == [50.0, 100.0]


def test_names_of_ticks_do_not_run_into_each_other_nor_over_the_ends():
    scale = LogScale(low=0.249, high=3.1)
    everyone = {tick.label for tick in scale.ticks()}
    ticks = scale.ticks(apart=16.0)
    named = [tick.at for tick in ticks if tick.label]
    assert "0.25\u00d7" in everyone
    assert "1\u00d7" in {tick.label for tick in ticks}
    assert len(ticks) == len(scale.ticks())
    assert 2 <= len(named) < len(ticks)
    assert all(8 <= at <= 92 for at in named)
    assert all(b - a >= 16 for a, b in pairwise(named))
