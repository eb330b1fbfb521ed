"""Cells of the page's tables."""

import pytest

from kerneltruth.analysis.intervals import rate, unknown_rate
from kerneltruth.documents.estimates import EstimateRecord
from kerneltruth.report.page.cells import factor, number, share, share_estimate, table, text, whole
from kerneltruth.report.page.wording import percent

DASH = "\N{EN DASH}"


def test_a_share_has_its_counts_and_its_bar():
    found = share(rate(1, 4), part="exe")
    assert (found.form, found.text, found.counts) == ("share", "25.0%", "1 of 4")
    assert (found.fill, found.value, found.part) == (25.0, 0.25, "exe")


def test_a_share_of_nothing_has_no_bar():
    found = share(rate(0, 0))
    assert (found.text, found.counts, found.interval, found.fill) == (DASH, "0 of 0", "", None)


def test_what_was_not_tried_is_named_so():
    assert share(unknown_rate(3), unknown="not tried").text == "not tried"


def test_words_sort_by_themselves_or_by_a_number():
    assert text("B of A").value == "b of a"
    assert text("7 of 9", value=7).value == 7


@pytest.mark.parametrize(
    ("cell", "shown"),
    [(number(None), DASH), (number(0.5), "0.500"), (number(0.5, percent), "50.0%")],
)
def test_a_number_is_shown_as_it_is_said_elsewhere(cell, shown):
    assert cell.text == shown


def test_counts_have_a_comma_at_thousands():
    assert whole(12345).text == "12,345"


def test_a_mean_has_the_counts_that_it_is_given():
    mean = EstimateRecord(value=0.5, low=0.25, high=0.75, count=2, clusters=2)
    assert share_estimate(mean, counts="2 of 3 tasks").counts == "2 of 3 tasks"
    assert factor(mean).interval == f"0.250 {DASH} 0.750\N{MULTIPLICATION SIGN}"


def test_the_name_of_a_table_is_an_id():
    assert table("speed Method / H100!", "", [], []).name == "speed-method-h100"
