"""A wrong result is named by what it depends on; what is right in the same way stays clean."""

import pytest

from faulty_relus import FAULTY, RIGHT
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.engine.evaluator import EvaluationRequest
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate


@pytest.fixture
def judge(evaluator):
    def judge_one(source):
        candidate = read_candidate(source, "relu.py", task_names=("relu",), task="relu")
        plan = Plan(cases=24, contract="torch", compile=False)
        return evaluator.evaluate(
            EvaluationRequest(name="relu", task="relu", candidate=candidate, plan=plan)
        ).attempt

    return judge_one


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_named(judge, name):
    source, kind = FAULTY[name]
    verdict = judge(source).verdict
    assert isinstance(verdict, Failed), verdict
    assert verdict.kind == kind, verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_clean(judge, name):
    attempt = judge(RIGHT[name])
    assert attempt.verdict == Passed(), attempt.failure
