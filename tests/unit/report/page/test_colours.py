"""Contrast of the page's colours, in both themes: 4.5 for text, 3 for what is not."""

import re

import pytest

from kerneltruth.report.html import TEMPLATES

SOURCE = (TEMPLATES / "style" / "tokens.css").read_text()
TEXT = [
    *(
        (ink, back)
        for ink in ("ink", "soft", "accent", "right", "wrong", "broke", "open")
        for back in ("page", "surface", "raised")
    ),
    *((f"s{i}-ink", f"s{i}") for i in range(5)),
    ("broke-ink", "broke-back"),
    ("added-ink", "added"),
    ("removed-ink", "removed"),
    ("ink", "accent-soft"),
    ("surface", "accent"),
    *((token, "raised") for token in ("word", "text", "remark", "number")),
]
MARKS = [
    *((mark, "surface") for mark in ("edge", "accent", "accent-fill", "right-fill", "wrong-fill")),
    *((mark, "raised") for mark in ("wrong", "edge")),
    *((mark, "surface") for mark in ("number", "wrong", "right", "word", "ink")),
]


def themes():
    blocks = re.findall(r"\{([^{}]*--page[^{}]*)\}", SOURCE)
    return [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in blocks]


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_what_the_standard_says():
    assert contrast("#ffffff", "#000000") == 21
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48


@pytest.mark.parametrize("theme", themes(), ids=["light", "dark", "dark chosen"])
def test_text_can_be_read(theme):
    weak = {pair: contrast(theme[pair[0]], theme[pair[1]]) for pair in TEXT}
    assert {pair: c for pair, c in weak.items() if c < 4.5} == {}


@pytest.mark.parametrize("theme", themes(), ids=["light", "dark", "dark chosen"])
def test_marks_can_be_seen(theme):
    weak = {pair: contrast(theme[pair[0]], theme[pair[1]]) for pair in MARKS}
    assert {pair: c for pair, c in weak.items() if c < 3} == {}


def test_the_chosen_dark_theme_is_the_systems():
    assert themes()[1] == themes()[2]
