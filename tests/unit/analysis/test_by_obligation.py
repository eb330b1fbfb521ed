"""Attempts by the obligations that they break or refuse."""

import pytest
from results_for_tests import result

from kerneltruth.analysis.by_obligation import failed_obligations, only_failing
from kerneltruth.analysis.results import Obliged
from kerneltruth.errors import UserError


def judged(**profile):
    return result(profile=profile, contract="core")


def test_a_part_that_is_broken_or_refused_fails_its_obligation():
    found = judged(
        layouts=Obliged("held"),
        shapes=Obliged("refused"),
        **{"layouts.beyond": Obliged("broken", False, False)},
    )
    assert failed_obligations(found) == ("shapes", "layouts")


def test_what_was_not_tried_is_not_among_the_failing():
    left, (note,) = only_failing([judged(shapes=Obliged("not_tried"))], "shapes")
    assert left == []
    assert "0 of 1 attempts" in note


def test_the_note_counts_attempts_without_a_profile():
    left, (note,) = only_failing([judged(shapes=Obliged("broken")), result()], "shapes")
    assert len(left) == 1
    assert "1 have no profile" in note


def test_without_an_obligation_all_attempts_are_left():
    found = [judged(), result()]
    assert only_failing(found, None) == (found, [])


def test_an_unknown_obligation_is_refused_with_the_known_ones():
    with pytest.raises(UserError, match="--obligation speed: must be one of published, shapes"):
        only_failing([], "speed")
