"""One warm evaluator for the whole corpus, in both directions."""

import pytest

from kerneltruth.corpus import ENTRIES, source
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.case_loop import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS


@pytest.fixture(scope="session")
def evaluator():
    evaluator = Evaluator(device="cpu", targets=(), policy=Policy())
    evaluator.start()
    yield evaluator
    evaluator.close()


@pytest.fixture(scope="session")
def evaluate(evaluator):
    """Judge a kernel of the corpus by name, without explanation, compiler or peers' checks."""
    known = {entry.name: entry for entry in ENTRIES}

    def evaluate_one(name, *, cases, seed=0):
        entry = known[name]
        candidate = read_candidate(
            source(entry), f"{name}.py", task_names=tuple(TASKS), task=entry.task
        )
        plan = Plan(seed=seed, cases=cases, compile=False)
        job = EvaluationRequest(name=name, task=entry.task, candidate=candidate, plan=plan)
        return evaluator.evaluate(job).attempt

    return evaluate_one
