"""Answers judged between rounds: whom they are timed against."""

from types import SimpleNamespace

import pytest

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


class Keeper:
    """A timekeeper that times nothing."""

    capacity = 1

    def ready(self, tasks):
        pass

    prepare_in_background = ready

    def time(self, task, candidate, *, then=None):
        return CandidateTimes(outcome="timed", shapes=())


@pytest.fixture
def on_a_gpu(monkeypatch, tmp_path):
    """A machine that is said to have a GPU, on which every answer is right."""
    asked = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def benchmarker(runner, baselines):
        asked.append(baselines)
        return Keeper()

    class OneAfterTheOther:
        def __init__(self, *, work, workers, then):
            self._then = then

        def run(self, jobs):
            for job in jobs:
                ref = CandidateRef(sha256="", path="", language="torch", entry="relu")
                right = Attempt(task=job.task, candidate=ref, verdict=Passed(), cases=1, failed=0)
                evaluation = Evaluation(attempt=right)
                assert self._then.wanted(job, evaluation)
                (timed,) = self._then.work([(job, evaluation)])
                yield Done(job=job, result=timed)

    monkeypatch.setattr("kerneltruth.engine.benchmark.runs.benchmarker_for_runs", benchmarker)
    return SimpleNamespace(device="cuda:0", versions=dict, asked=asked, pool=OneAfterTheOther)


def test_answers_are_timed_against_eager_alone_of_which_their_reviews_speak(on_a_gpu):
    options = GenerateRequest(suite="kernelbenchx", method="refine", workers=1)
    tasks = {t.name: t for t in tasks_of("kernelbenchx").values()}
    reviewer = Reviewer(options, on_a_gpu, tasks, "kernelbenchx", pool=on_a_gpu.pool)
    exchange = Exchange(task="kernelbenchx/relu", sample=0, round=0, reply=Reply(text=ANSWER))
    (reviewed,) = reviewer.review([exchange])
    assert reviewed.review is not None
    assert (reviewed.review.outcome, reviewed.review.stage) == ("pass", "perf")
    assert on_a_gpu.asked == [("eager",)]
