"""A warm court on the first CUDA device, shared by all tests of this folder."""

import pytest

from kerneltruth.corpus import ENTRIES, source
from kerneltruth.engine.evaluator import Court, Job
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.course import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS

DEVICE = "cuda:0"


@pytest.fixture(scope="session")
def court():
    court = Court(device=DEVICE, targets=(), policy=Policy())
    court.start()
    yield court
    court.close()


def _job(source_text, *, name, task, cases):
    candidate = read_candidate(source_text, f"{name}.py", task_names=tuple(TASKS), task=task)
    plan = Plan(cases=cases, compile=False, deadline_s=60.0)
    return Job(name=name, task=task, candidate=candidate, plan=plan)


@pytest.fixture(scope="session")
def judge(court):
    """Judge a source text on the GPU."""

    def judge_one(source_text, *, task, cases=12):
        job = _job(source_text, name="candidate", task=task, cases=cases)
        return court.hear(job).attempt

    return judge_one


@pytest.fixture(scope="session")
def hear(court):
    """Judge a kernel of the corpus by name on the GPU."""
    known = {entry.name: entry for entry in ENTRIES}

    def hear_one(name, *, cases=32):
        entry = known[name]
        return court.hear(_job(source(entry), name=name, task=entry.task, cases=cases)).attempt

    return hear_one
