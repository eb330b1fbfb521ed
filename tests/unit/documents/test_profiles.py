"""What a profile says of a failure, in words."""

import pytest

from kerneltruth.documents.case import Case
from kerneltruth.documents.profiles import failing_with, said_of_entry
from kerneltruth.documents.records import Judgement, ProfileEntry
from kerneltruth.documents.verdict import Failed, RuntimeFault

CASE = Case(task="relu", dims=(("N", 7),))
NAN = Judgement(case=CASE, verdict=Failed(kind="nan", detail="3 of 7"))
RAISED = Judgement(case=CASE, verdict=RuntimeFault(error="ValueError", detail="no"))


def entry(status, **fields):
    return ProfileEntry(status=status, promised=True, **fields)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (entry("held", cases=1), "held in 1 case"),
        (entry("held", cases=12), "held in 12 cases"),
        (entry("broken", cases=2, failure=NAN), f"broken: nan on {CASE.summary()}"),
        (entry("refused", reason="no", failure=RAISED), f"refused: no on {CASE.summary()}"),
        (entry("not_tried", reason="no case tries it"), "not tried: no case tries it"),
        (entry("not_applicable"), "not applicable"),
    ],
)
def test_an_entry_is_said_in_a_line(made, said):
    assert said_of_entry(made) == said


def test_a_failure_names_each_obligation_that_it_breaks_or_is_refused_by():
    profile = {
        "published": entry("broken", failure=NAN),
        "shapes": entry("held", cases=3),
        "memory": entry("broken", failure=NAN),
        "specials": entry("refused", failure=RAISED),
    }
    assert failing_with(profile, NAN) == ("published", "memory")
    assert failing_with(profile, RAISED) == ("specials",)
    assert failing_with(profile, None) == ()
