"""What an attempt gives as the reason of its verdict."""

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Attempt, CandidateRef, Judgement, ProfileEntry
from kerneltruth.documents.verdict import CompileError, TimedOut
from kerneltruth.engine.evaluator import detail_of_attempt

REF = CandidateRef(sha256="0" * 64, path="k.py", language="triton", entry="relu")
CASE = Case(task="relu", dims=(("M", 2), ("N", 3)), seed=1)
LATE = TimedOut(seconds=2.0)


def attempt(verdict, *, cases=0, **more):
    return Attempt(task="relu", candidate=REF, verdict=verdict, cases=cases, failed=0, **more)


def test_a_timeout_names_the_call_that_did_not_return_and_its_limit():
    failed = attempt(LATE, cases=1, failure=Judgement(case=CASE, verdict=LATE))
    assert detail_of_attempt(failed) == (f"A call did not return within 2 s: {CASE.summary()}.")


def test_a_timeout_before_any_call_is_of_the_load():
    assert detail_of_attempt(attempt(LATE)) == "Did not load within 2 s."


def test_a_timeout_of_all_calls_together_names_what_was_not_tried():
    entries = {
        "published": ProfileEntry(status="held", promised=True, decisive=True, cases=1),
        "shapes": ProfileEntry(status="not_tried", promised=True, decisive=True, cases=0),
    }
    spent = attempt(LATE, cases=1, profile=entries)
    assert detail_of_attempt(spent) == "The candidate's time, 2 s, is spent: shapes not tried."


def test_another_verdict_gives_its_own_reason():
    assert detail_of_attempt(attempt(CompileError(detail="no such module"))) == "no such module"
