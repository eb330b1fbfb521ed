"""Attempts selected by the obligations that they fail, and by whether they have a kernel."""

import pytest
from results_for_tests import result

from kerneltruth.analysis.results import TORCH_ONLY, Obliged
from kerneltruth.analysis.selection import ALL, Selection, failed_obligations, selected
from kerneltruth.errors import UserError


def result_with(**profile):
    return result(profile=profile, contract="core")


def test_a_part_that_is_broken_or_refused_fails_its_obligation():
    found = result_with(
        layouts=Obliged("held"),
        shapes=Obliged("refused"),
        **{"layouts.beyond": Obliged("broken", False, False)},
    )
    assert failed_obligations(found) == ("shapes", "layouts")


def test_what_was_not_tried_is_not_among_the_failing():
    left, (note,) = selected(
        [result_with(shapes=Obliged("not_tried"))], Selection(obligation="shapes")
    )
    assert left == []
    assert "0 of 1 attempts" in note


def test_the_note_counts_attempts_without_a_profile():
    found = [result_with(shapes=Obliged("broken")), result()]
    left, (note,) = selected(found, Selection(obligation="shapes"))
    assert len(left) == 1
    assert "1 have no profile" in note


def test_without_a_choice_all_attempts_are_left():
    found = [result_with(), result()]
    assert selected(found, ALL) == (found, [])


def test_an_unknown_obligation_is_refused_with_the_known_ones():
    with pytest.raises(UserError, match="--obligation speed: must be one of published, shapes"):
        selected([], Selection(obligation="speed"))


def test_answers_without_a_kernel_can_be_left_out_and_are_counted():
    found = [result("a", language=TORCH_ONLY), result("b", language="triton"), result("c")]
    left, (note,) = selected(found, Selection(without_torch_only=True))
    assert [r.task for r in left] == ["b", "c"]
    assert "1 of 3 attempts have no kernel of their own and are left out" in note


def test_both_choices_leave_what_satisfies_both():
    broken = {"profile": {"shapes": Obliged("broken")}, "contract": "core"}
    found = [result("a", language=TORCH_ONLY, **broken), result("b", **broken), result("c")]
    both = Selection(obligation="shapes", without_torch_only=True)
    left, notes = selected(found, both)
    assert [r.task for r in left] == ["b"]
    assert len(notes) == 2
