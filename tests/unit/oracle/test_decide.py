"""The verdict from facts alone: of several reasons against a pass, which one it is."""

from collections import Counter
from dataclasses import replace

import pytest

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Attempt, CandidateRef, Judgement, ProfileEntry
from kerneltruth.documents.verdict import (
    CompileError,
    Crashed,
    Declined,
    Failed,
    Hack,
    Infra,
    Passed,
    RuntimeFault,
    TimedOut,
    Unrefereeable,
    UnsupportedHere,
    Void,
)
from kerneltruth.oracle.decide import (
    Facts,
    Failure,
    Untried,
    decide,
    deciding_failure,
    deciding_round,
)
from kerneltruth.oracle.tally import Tally

CASE = Case(task="relu", dims=(("M", 3), ("N", 5)), seed=0)
WRONG = Failed(kind="value", detail="")
FORM = Failed(kind="dtype", detail="")
REFUSED = RuntimeFault(error="ValueError", detail="")
DECEIT = Hack(kind="kept_result", detail="")
SPENT = TimedOut(seconds=200.0)
UNANSWERED = UnsupportedHere(reason="no such intrinsic")


def failure(key, verdict, *, decides=True):
    return Failure(key, Judgement(case=CASE, verdict=verdict), decides)


def kernel(status):
    return ProfileEntry(status=status, promised=True, decisive=True, reason="it launches none")


RIGHT = Facts(
    not_loaded=None,
    failures=(),
    untried=None,
    time_spent=None,
    tally=Tally(cases=8, passed=8),
    planned=8,
)


def test_without_a_reason_against_it_a_candidate_passes():
    assert decide(RIGHT) == Passed()
    assert decide(replace(RIGHT, kernel=kernel("held"))) == Passed()


# All reasons at once; each step removes the one before, and the next in order is the verdict.
ALL = Facts(
    not_loaded=CompileError(detail="bad syntax"),
    failures=(
        failure("layouts", REFUSED),
        failure("interface", FORM),
        failure("values", WRONG),
        failure("repeatable", DECEIT),
    ),
    untried=Untried("empty", None),
    time_spent=SPENT,
    tally=Tally(cases=1, passed=1, declined=[(CASE, "no")] * 5, unanswered=[UNANSWERED]),
    planned=8,
    kernel=kernel("broken"),
)
STEPS = [
    ({}, CompileError(detail="bad syntax")),
    ({"not_loaded": None}, DECEIT),
    ({"failures": ALL.failures[:3]}, WRONG),
    ({"failures": ALL.failures[:2]}, FORM),
    ({"failures": ALL.failures[:1]}, REFUSED),
    ({"failures": ()}, SPENT),
    ({"time_spent": None}, "no such intrinsic (in 1 of 7 cases, as its process reported)"),
    ({"tally": Tally(cases=1, passed=1, declined=ALL.tally.declined)}, "`empty` decides but was"),
    ({"untried": None}, "5 of 6 cases were declined, such as: no"),
    ({"tally": RIGHT.tally}, "it launches none; compute the result in a Triton or CUDA C++ kernel"),
    ({"kernel": None}, Passed()),
]


def test_of_several_reasons_against_a_pass_the_first_in_order_is_the_verdict():
    facts = ALL
    for change, expected in STEPS:
        facts = replace(facts, **change)
        verdict = decide(facts)
        if isinstance(expected, str):
            said = getattr(verdict, "reason", None) or verdict.detail
            assert said.startswith(expected)
        else:
            assert verdict == expected


@pytest.mark.parametrize(
    ("failures", "key"),
    [
        ([("layouts", REFUSED), ("interface", FORM), ("values", WRONG)], "values"),
        ([("layouts", REFUSED), ("interface", FORM)], "interface"),
        ([("values", WRONG), ("shapes", Crashed(signal=11, detail=""))], "values"),
        ([("shapes", SPENT), ("values", WRONG)], "shapes"),
        ([("values", WRONG), ("repeatable", DECEIT)], "repeatable"),
    ],
)
def test_the_gravest_failure_decides_and_of_equals_the_first(failures, key):
    found = [failure(*each) for each in failures]
    assert deciding_failure(found) is dict((f.key, f.judgement) for f in found)[key]


def test_a_failure_beyond_the_contract_decides_nothing_unless_it_proves_deceit():
    beyond = (failure("layouts", WRONG, decides=False),)
    assert decide(replace(RIGHT, failures=beyond)) == Passed()
    proof = (*beyond, failure("specials", DECEIT, decides=False))
    assert decide(replace(RIGHT, failures=proof)) == DECEIT


def test_an_input_that_is_declined_counts_as_refused_where_it_decides():
    declined = (failure("layouts", Declined(reason="not contiguous")),)
    verdict = decide(replace(RIGHT, failures=declined))
    assert verdict == RuntimeFault(error="refused", detail="not contiguous")


@pytest.mark.parametrize(
    ("unjudged", "word"),
    [
        (None, "unsupported_here"),
        (Void(reason="PyTorch raises"), "unrefereeable"),
        (Unrefereeable(reason="no bound"), "unrefereeable"),
        (UnsupportedHere(reason="too large"), "unsupported_here"),
        (Infra(reason="lost"), "infra"),
    ],
)
def test_what_decides_and_was_not_tried_is_named(unjudged, word):
    verdict = decide(replace(RIGHT, untried=Untried("empty", unjudged)))
    assert verdict.word == word
    assert "empty" in verdict.reason
    assert getattr(unjudged, "reason", "none of the cases") in verdict.reason


@pytest.mark.parametrize(
    ("tally", "word"),
    [
        (Tally(cases=4, passed=4), "pass"),
        (Tally(cases=3, passed=3, declined=[(CASE, "no")] * 5), "unsupported_here"),
        (Tally(cases=3, passed=3, declined=[(CASE, "no")] * 3), "pass"),
        (Tally(skipped=Counter({"the operator rejects the case": 8})), "unsupported_here"),
        (Tally(cases=1, passed=1, void=Counter({"PyTorch raises": 7})), "unrefereeable"),
        (Tally(unrefereeable=Counter({"no bound": 8})), "unrefereeable"),
        (Tally(), "unrefereeable"),
    ],
)
def test_a_pass_rests_on_half_of_the_planned_cases_or_of_those_it_was_given(tally, word):
    assert decide(replace(RIGHT, tally=tally)).word == word


def test_a_forgiving_plan_takes_right_cases_for_all_that_was_not_tried():
    little = replace(
        RIGHT,
        untried=Untried("empty", None),
        time_spent=SPENT,
        tally=Tally(cases=1, passed=1, unanswered=[UNANSWERED]),
    )
    assert decide(little) == SPENT
    assert decide(replace(little, forgiving=True)) == Passed()
    none = replace(little, forgiving=True, tally=Tally(unanswered=[UNANSWERED]))
    assert decide(none) == SPENT
    assert decide(replace(none, time_spent=None)) == UNANSWERED


@pytest.mark.parametrize(
    ("status", "word"), [("broken", "fail"), ("not_tried", "unsupported_here")]
)
def test_a_required_kernel_that_did_not_do_the_work_leaves_no_pass(status, word):
    verdict = decide(replace(RIGHT, kernel=kernel(status)))
    assert verdict.word == word
    assert "it launches none" in getattr(verdict, "detail", "") + getattr(verdict, "reason", "")


def test_a_pass_takes_both_rounds():
    ref = CandidateRef(sha256="0" * 64, path="relu.py", language="triton", entry="relu")
    right, wrong = (
        Attempt(task="relu", candidate=ref, verdict=v, cases=3, failed=0) for v in (Passed(), WRONG)
    )
    again = Attempt(task="relu", candidate=ref, verdict=Passed(), cases=6, failed=0)
    assert deciding_round(right, again) is right
    assert deciding_round(right, wrong) is wrong
