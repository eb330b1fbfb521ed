"""Characters that a terminal obeys or that nobody sees are spelt out."""

from __future__ import annotations

from kerneltruth.report.harmless import harmless, visible

OBEYED = "a\x1b[2Jb\x9bc\u202ed\ud800e\u200bf\xadg\U000e0041h"
SPELT_OUT = r"a\x1b[2Jb\x9bc\u202ed\ud800e\u200bf\xadg\U000e0041h"


def test_what_a_terminal_obeys_or_nobody_sees_is_spelt_out():
    assert harmless(OBEYED) == visible(OBEYED) == SPELT_OUT


def test_line_ends_and_tabs_are_spelt_out_in_a_single_line_only():
    assert harmless("a\n\tb") == "a\n\tb"
    assert visible("a\n\tb") == r"a\n\tb"


def test_other_scripts_stay():
    text = "\u00e4 \u4e2d\u3000\U0001f600"
    assert harmless(text) == visible(text) == text
