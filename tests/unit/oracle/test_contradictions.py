"""What a child claims and the judge has measured otherwise is a proof, whatever else it says."""

from dataclasses import replace

import pytest
import torch
from scripted import RELU, returned, session_of

from kerneltruth.documents.verdict import Hack, Passed
from kerneltruth.oracle.contradictions import SLACK_S, false_claim
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.second_round import judge_candidate
from kerneltruth.runner.observation import KernelWork, Observation, OtherResult

RESULT = returned(torch.zeros(3, 5))
COUNTED = replace(RESULT, work=KernelWork(elements=15))


def false_claim_in(observation, *, arrays=False):
    found = false_claim(observation, waited_s=0.5, arrays=arrays)
    return None if found is None else found.detail


@pytest.mark.parametrize("seconds", [0.5 + 2 * SLACK_S, -0.1, float("nan"), float("inf")])
def test_a_call_takes_no_longer_than_the_judge_has_waited(seconds):
    assert "claims that the call took" in false_claim_in(replace(RESULT, seconds=seconds))


@pytest.mark.parametrize("seconds", [None, 0.0, 0.4, 0.5])
def test_a_time_within_the_judges_is_possible(seconds):
    assert false_claim_in(replace(RESULT, seconds=seconds)) is None


@pytest.mark.parametrize("ended", ["load_failed", "raised", "timeout"])
def test_what_loading_took_is_no_claim_about_the_calls_that_repeat_how_it_ended(ended):
    assert false_claim_in(Observation(ended=ended, seconds=9.0)) is None


def test_results_have_as_many_elements_as_their_process_counts():
    assert false_claim_in(COUNTED) is None
    wrong = false_claim_in(replace(RESULT, work=KernelWork()))
    assert wrong == "its process claims that its results have 0 elements; they have 15"


@pytest.mark.parametrize(
    ("observation", "arrays"),
    [
        (replace(RESULT, work=KernelWork()), True),
        (replace(COUNTED, results=(*RESULT.results, OtherResult(type="int", text="1"))), False),
        (replace(COUNTED, ended="raised", results=()), False),
    ],
    ids=["arrays", "other results", "no results"],
)
def test_what_a_child_does_not_count_contradicts_nothing(observation, arrays):
    assert false_claim_in(observation, arrays=arrays) is None


@pytest.mark.parametrize("contract", ["published", "core"])
def test_a_false_claim_decides_before_all_else_and_scores_nothing(contract):
    def forging(call):
        seen = returned(call.tensors["x"].clamp(min=0))
        return seen if len(made.runner.calls) == 1 else replace(seen, seconds=float("nan"))

    made = session_of(RELU, forging)
    *_, ended = judge_candidate(made, Plan(cases=6, contract=contract))
    attempt = ended.attempt
    assert isinstance(attempt.verdict, Hack)
    assert (attempt.verdict.kind, attempt.score) == ("false_claim", 0.0)
    assert attempt.failed


def test_an_honest_child_passes():
    honest = session_of(RELU, lambda call: returned(call.tensors["x"].clamp(min=0), seconds=0.0))
    *_, ended = judge_candidate(honest, Plan(cases=6))
    assert ended.attempt.verdict == Passed()
