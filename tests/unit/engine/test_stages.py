"""What `run --json` lists of a candidate is what its result line says."""

import pytest
from msgspec import UNSET

from kerneltruth.documents.lines import ResultLine, StageRecord, StagesRecord
from kerneltruth.documents.model import plain
from kerneltruth.documents.records import Attempt, CandidateRef
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.documents.verdict import Failed, Passed, RuntimeFault
from kerneltruth.engine.stages import ListedLine, listed, was_wrong_when_timed


def line(key="one", verdict=None, call="pass", exe="pass", perf=None, **more):
    attempt = {}
    if verdict is not None:
        ref = CandidateRef(sha256="0" * 64, path="k.py", language="triton", entry="relu")
        attempt["attempt"] = Attempt(task="relu", candidate=ref, verdict=verdict, cases=3, failed=1)
    stages = {"call": StageRecord(outcome=call), "exe": StageRecord(outcome=exe)}
    if perf is not None:
        stages["perf"] = perf
    written = ResultLine(
        key=key, name=key, task="relu", stages=StagesRecord(**stages), **attempt, **more
    )
    return ListedLine.of(plain(written))


def test_a_wrong_candidate_has_its_kind_and_the_first_line_of_the_reason():
    found = line(verdict=Failed(kind="value", detail="5 of 9\nmore"), exe="fail")
    assert (found.verdict, found.kind, found.reason) == ("fail", "value", "5 of 9")


def test_an_error_of_the_kernel_is_the_reason():
    found = line(
        verdict=RuntimeFault(error="ValueError", detail="no such thing"),
        call="runtime_error",
        exe="not_run",
    )
    assert (found.verdict, found.kind, found.reason) == ("runtime_error", None, "no such thing")


def test_a_candidate_that_was_wrong_while_it_was_timed_failed():
    perf = CandidateTimes(outcome="wrong", detail="call 7 of a batch")
    found = line(verdict=Passed(), perf=perf)
    assert (found.verdict, found.kind, found.reason) == ("fail", "when_timed", "call 7 of a batch")


def test_a_finding_is_named_without_its_folder():
    found = line(verdict=Failed(kind="nan", detail=""), exe="fail", finding="findings/ab.json")
    assert found.finding == "ab.json"


def test_a_repeated_source_has_the_verdict_of_the_first():
    first = line(verdict=Failed(kind="inf", detail="inf"), exe="fail")
    again = line(key="two", exe="fail", same_as="one")
    assert again.verdict == "fail"
    assert [(c.name, c.kind, c.same_as) for c in listed([first, again])] == [
        ("one", "inf", None),
        ("two", "inf", "one"),
    ]


@pytest.mark.parametrize(
    ("exe", "perf", "wrong"),
    [("pass", "wrong", True), ("pass", "timed", False), ("fail", "wrong", False)],
)
def test_a_result_may_be_wrong_only_while_it_is_timed(exe, perf, wrong):
    stages = StagesRecord(exe=StageRecord(outcome=exe), perf=CandidateTimes(outcome=perf))
    assert was_wrong_when_timed(stages) is wrong


def test_a_run_without_stages_was_wrong_in_none():
    assert was_wrong_when_timed(UNSET) is False
