"""What is known of a failing case is not asked for again."""

import sys
from collections import Counter
from pathlib import Path

from kerneltruth.explain.diagnosis import Effort, diagnose
from kerneltruth.oracle.course import Plan, try_candidate
from kerneltruth.runner.protocol import Observation

sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))

from scripted import RELU, trial_of


def diagnosed(answer):
    """Each call's arguments with how often it was made, and the failing and the smallest case."""
    trial = trial_of(RELU, answer)
    *_, ended = try_candidate(trial, Plan(cases=8, dtypes=("float32",)))
    failure = ended.attempt.failure
    before = len(trial.runner.calls)
    found = diagnose(trial, failure, (), Effort(evaluations=200, seconds=60.0))
    return Counter(call.arguments for call in trial.runner.calls), found, failure, before


def raises(call):
    return Observation(ended="raised", error="RuntimeError", message="no")


def test_no_case_is_called_twice():
    calls, found, failure, before = diagnosed(raises)
    assert before == 1
    assert found.minimal.identity != failure.case.identity
    assert len(calls) > 1
    assert set(calls.values()) == {1}


def test_a_case_that_gets_no_smaller_is_not_called_again():
    seen = []

    def only_once(call):
        seen.append(call)
        return raises(call) if len(seen) == 1 else call.tensors["x"].clamp(min=0)

    calls, found, failure, _ = diagnosed(only_once)
    assert found.minimal.identity == failure.case.identity
    assert found.shown
    assert set(calls.values()) == {1}
