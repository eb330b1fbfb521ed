"""A warm evaluator on the first CUDA device, shared by all tests of this folder."""

import pytest

from kerneltruth.corpus import ENTRIES, source
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS
from opened_sessions import opened

__all__ = ["evaluate", "evaluator", "judge", "opened"]

DEVICE = "cuda:0"


@pytest.fixture(scope="session")
def evaluator():
    evaluator = Evaluator(device=DEVICE, targets=(), policy=Policy())
    evaluator.start()
    yield evaluator
    evaluator.close()


def _job(source_text, *, name, task, cases, contract="core", large=False):
    candidate = read_candidate(source_text, f"{name}.py", task_names=tuple(TASKS), task=task)
    plan = Plan(cases=cases, contract=contract, compile=False, deadline_s=60.0, large=large)
    return EvaluationRequest(name=name, task=task, candidate=candidate, plan=plan)


@pytest.fixture(scope="session")
def judge(evaluator):
    """Judge a source text on the GPU."""

    def judge_one(source_text, *, task, **how):
        job = _job(source_text, name="candidate", task=task, **{"cases": 12} | how)
        return evaluator.evaluate(job).attempt

    return judge_one


@pytest.fixture(scope="session")
def evaluate(evaluator):
    """Judge a kernel of the corpus by name on the GPU."""
    known = {entry.name: entry for entry in ENTRIES}

    def evaluate_one(name, *, cases=32):
        entry = known[name]
        return evaluator.evaluate(
            _job(source(entry), name=name, task=entry.task, cases=cases)
        ).attempt

    return evaluate_one
