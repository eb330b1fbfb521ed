"""When a model keeps the weights that its constructor draws, and which cases it is given then."""

import pytest
from msgspec.structs import replace
from scripted import case_of, declare

from kerneltruth.documents.verdict import Passed, UnsupportedHere
from kerneltruth.oracle.model_weights import ModelWeights
from kerneltruth.runner.child.weight_places import NO_PLACE

SCALE = declare("scale(x[M, N], w[N]: weight)", lambda x, w: x * w)
CASE = case_of(SCALE)
LACKS = UnsupportedHere(reason=f"{NO_PLACE} w")


def test_a_case_is_taken_as_it_is_with_the_judges_weights():
    assert ModelWeights(SCALE).as_taken(CASE) is CASE


def test_a_model_without_a_place_for_weights_keeps_its_own_from_then_on():
    weights = ModelWeights(SCALE)
    assert weights.become_own(CASE, LACKS)
    assert weights.own == LACKS.reason
    assert weights.as_taken(CASE) == replace(CASE, absent=(*CASE.absent, "w"))
    assert weights.as_taken(replace(CASE, dtype="int8")) is None
    # It is news once.
    assert not weights.become_own(CASE, LACKS)


@pytest.mark.parametrize("verdict", [Passed(), UnsupportedHere(reason="no such intrinsic")])
def test_nothing_else_that_a_call_shows_is_about_weights(verdict):
    weights = ModelWeights(SCALE)
    assert not weights.become_own(CASE, verdict)
    assert weights.own is None
