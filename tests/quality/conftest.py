"""One warm court for the whole corpus, in both directions."""

import pytest

from kerneltruth.corpus import ENTRIES, source
from kerneltruth.engine.evaluator import Court, Job
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.course import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS


@pytest.fixture(scope="session")
def court():
    court = Court(device="cpu", targets=(), policy=Policy())
    court.start()
    yield court
    court.close()


@pytest.fixture(scope="session")
def hear(court):
    """Judge a kernel of the corpus by name, without explanation, compiler or peers' checks."""
    known = {entry.name: entry for entry in ENTRIES}

    def hear_one(name, *, cases, seed=0):
        entry = known[name]
        candidate = read_candidate(
            source(entry), f"{name}.py", task_names=tuple(TASKS), task=entry.task
        )
        plan = Plan(seed=seed, cases=cases, compile=False)
        job = Job(name=name, task=entry.task, candidate=candidate, plan=plan)
        return court.hear(job).attempt

    return hear_one
