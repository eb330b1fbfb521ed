"""The verdict map."""

import pytest
from page_material import result

from kerneltruth.report.page.verdict_map import cell, shade, verdict_map


@pytest.mark.parametrize(
    ("right", "total", "judged", "returned", "name"),
    [
        (0, 3, 0, 0, "open"),
        (0, 3, 3, 0, "broke"),
        (0, 3, 3, 1, "s0"),
        (1, 5, 5, 5, "s1"),
        (2, 5, 5, 5, "s2"),
        (4, 5, 5, 5, "s3"),
        (5, 5, 5, 5, "s4"),
    ],
)
def test_a_cell_is_shaded_by_the_share_that_is_right(right, total, judged, returned, name):
    assert shade(right=right, total=total, judged=judged, returned=returned) == name


def test_one_answer_shows_a_mark_of_its_outcome():
    assert cell([result()]).mark == "\u2713"
    assert cell([result(outcome="compile_error", called=False)]).mark == "C"
    assert cell([result(outcome="unsupported_here", called=False)]).mark == "\u2013"


def test_several_answers_show_their_counts_and_say_their_outcomes():
    found = cell([result(), result(outcome="fail"), result(outcome="fail")])
    assert found.mark == "1/3"
    assert found.said == "2 fail, 1 pass"


def test_a_method_without_an_answer_to_a_task_has_no_cell():
    found = verdict_map([result(method="a"), result("kernelbenchx/gelu", method="b")])
    assert found.methods == ["a \u00b7 m", "b \u00b7 m"]
    (group,) = found.categories
    assert [t.short for t in group.tasks] == ["gelu", "relu"]
    assert [[c is not None for c in t.cells] for t in group.tasks] == [
        [False, True],
        [True, False],
    ]
