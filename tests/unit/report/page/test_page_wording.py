"""How numbers and names are said."""

import pytest

from kerneltruth.report.page.wording import (
    figures,
    method_label,
    microseconds,
    percent,
    shortened,
    times,
    visible,
)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (None, "\u2013"),
        (0.0, "0%"),
        (1.0, "100%"),
        (0.466, "46.6%"),
        (0.0004, "0.04%"),
        (0.9999, "99.99%"),
        (1.0669, "106.7%"),
        (-0.0205, "-2.1%"),
    ],
)
def test_a_share_has_as_many_digits_as_tell_it_from_none_and_all(share, said):
    assert percent(share) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.4367, "1.44"),
        (21.44, "21.4"),
        (0.0812, "0.0812"),
        (12345.6, "12,346"),
        (1e-5, "1e-05"),
        (0.0, "0"),
    ],
)
def test_a_number_has_three_significant_figures(value, said):
    assert figures(value) == said


def test_a_factor_has_its_sign_and_an_unknown_one_a_dash():
    assert times(1.4367) == "1.44\u00d7"
    assert times(None) == "\u2013"


@pytest.mark.parametrize(
    ("us", "said"), [(8.2, "8.20 \u00b5s"), (1500, "1.50 ms"), (2e6, "2.00 s")]
)
def test_a_time_has_the_unit_that_suits_it(us, said):
    assert microseconds(us) == said


def test_what_cannot_be_seen_or_turns_text_around_is_spelt_out():
    assert visible("a\u202eb\x00\x1b[31m\u2028\ufeff") == (
        "a<U+202E>b<U+0000><U+001B>[31m<U+2028><U+FEFF>"
    )


def test_half_a_character_is_replaced():
    assert visible("a\ud800b") == "a\ufffdb"


def test_lines_and_tabs_and_other_scripts_stay():
    text = "def f():\n\treturn '\u00e4\u4e2d\U0001f600'"
    assert visible(text) == text


def test_a_long_text_is_cut_and_says_so():
    assert shortened("abcdef", 4) == "abc\u2026"
    assert shortened("abcd", 4) == "abcd"


def test_a_method_goes_by_its_name_and_model():
    assert method_label("refine", "m-7b") == "refine \u00b7 m-7b"
    assert method_label(None, "m-7b") == "m-7b"
    assert method_label(None, None) == "unlabelled"
