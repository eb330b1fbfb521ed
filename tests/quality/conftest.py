"""One warm evaluator for the whole corpus, in both directions."""

import pytest

from kerneltruth.corpus import ENTRIES, source
from kerneltruth.documents.verdict import Failed
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS
from kerneltruth.tasks.registry import find


@pytest.fixture(scope="session")
def evaluator(runner):
    evaluator = Evaluator(policy=Policy(), runner=runner)
    yield evaluator
    evaluator.eager_checks.close()


@pytest.fixture(scope="session")
def verdict_on(evaluator):
    """The verdict on a candidate: its first wrong result, after which nothing more is judged."""

    def judge(task, candidate, plan, cache=evaluator.cache):
        with CandidateSession(
            find(task),
            candidate,
            evaluator.runner,
            cache,
            deadline_s=plan.deadline_s,
            eager_checks=evaluator.eager_checks,
        ) as session:
            for event in judge_cases(session, plan):
                if isinstance(event, AttemptEnded):
                    return event.attempt.verdict
                if isinstance(event.judgement.verdict, Failed):
                    return event.judgement.verdict
        raise AssertionError("an attempt has an end")

    return judge


@pytest.fixture(scope="session")
def evaluate(evaluator):
    """Judge a kernel of the corpus by name, without explanation, compiler or peers' checks."""
    known = {entry.name: entry for entry in ENTRIES}

    def evaluate_one(name, *, cases, seed=0):
        entry = known[name]
        candidate = read_candidate(
            source(entry), f"{name}.py", task_names=tuple(TASKS), task=entry.task
        )
        plan = Plan(seed=seed, cases=cases, whole=True, compile=False)
        job = EvaluationRequest(name=name, task=entry.task, candidate=candidate, plan=plan)
        return evaluator.evaluate(job).attempt

    return evaluate_one
