"""Answers judged between rounds: whom they are timed against."""

from dataclasses import replace
from types import SimpleNamespace

from kerneltruth.documents.records import Attempt, CandidateRef
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.documents.verdict import Passed
from kerneltruth.engine.evaluator import Evaluation
from kerneltruth.engine.scheduling.scheduler import Done
from kerneltruth.generate.chat import Reply
from kerneltruth.generate.requests import GenerateRequest
from kerneltruth.generate.reviewer import Reviewer
from kerneltruth.generate.transcript import Exchange
from kerneltruth.tasks.registry import tasks_of

ANSWER = "```python\nimport torch\ndef relu(input, inplace=False):\n    return input.relu()\n```"


class OneAfterTheOther:
    """Pools of a machine with a GPU, on which every answer is right, and timed at once."""

    def __init__(self):
        self.requests = []

    def __call__(self, evaluators, *, workers, baselines, untimed, stage):
        self.requests.append(baselines)
        self.profiles = stage.keywords
        self._lost = untimed
        return self

    def run(self, jobs):
        for job in jobs:
            assert job.timed
            ref = CandidateRef(sha256="", path="", language="torch", entry="relu")
            right = Attempt(task=job.task, candidate=ref, verdict=Passed(), cases=1, failed=0)
            perf = CandidateTimes(outcome="timed", shapes=())
            timed = Evaluation(attempt=right, perf=perf, seconds=2.0)
            assert self._lost(job, timed, "it died") is timed
            yield Done(job=job, result=timed)


def test_the_same_source_takes_the_judges_seconds_once():
    options = GenerateRequest(suite="kernelbenchx", method="geak", workers=1)
    tasks = {t.name: t for t in tasks_of("kernelbenchx").values()}
    runner = SimpleNamespace(device="cuda:0")
    reviewer = Reviewer(options, runner, tasks, "kernelbenchx", pools=OneAfterTheOther())
    same = [
        Exchange(task="kernelbenchx/relu", sample=n, round=0, reply=Reply(text=ANSWER))
        for n in range(3)
    ]
    assert [found.review.seconds for found in reviewer.review(same)] == [2.0, 0.0, 0.0]


def test_answers_are_timed_against_eager_alone_of_which_their_reviews_speak():
    options = GenerateRequest(suite="kernelbenchx", method="refine", workers=1)
    tasks = {t.name: t for t in tasks_of("kernelbenchx").values()}
    pools, runner = OneAfterTheOther(), SimpleNamespace(device="cuda:0")
    reviewer = Reviewer(options, runner, tasks, "kernelbenchx", pools=pools)
    exchange = Exchange(task="kernelbenchx/relu", sample=0, round=0, reply=Reply(text=ANSWER))
    (reviewed,) = reviewer.review([exchange])
    assert reviewed.review is not None
    assert (reviewed.review.outcome, reviewed.review.stage) == ("pass", "perf")
    assert pools.requests == [("eager",)]
    assert pools.profiles == {"kernels": False}
    profiling = Reviewer(replace(options, kernels=True), runner, tasks, "kernelbenchx", pools=pools)
    assert len([*profiling.review([exchange])]) == 1
    assert pools.profiles == {"kernels": True}
