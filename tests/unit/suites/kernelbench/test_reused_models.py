"""One model serves several calls, as in KernelBench: it may keep no result of an earlier one."""

import pytest

from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.eager_checks import EagerChecks
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.suites.kernelbench.suite import KernelBench

from .problems import HEAD, LINEAR, NORMALIZED, problem

pytestmark = pytest.mark.processes

KEEPS_ITS_RESULT = LINEAR.replace("class Model", "class ModelNew").replace(
    "        return torch.relu(self.layer(x))",
    "        key = tuple(x.shape)\n"
    "        self.kept = getattr(self, 'kept', {})\n"
    "        if key not in self.kept:\n"
    "            self.kept[key] = torch.relu(self.layer(x))\n"
    "        return self.kept[key].clone()",
)
# Its problem keeps a state, and says so: each call goes on from the one before.
RECURRENT = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.layer = nn.Linear(features + hidden, hidden)
        self.state = torch.zeros(rows, hidden)

    def forward(self, x):
        self.state = torch.tanh(self.layer(torch.cat((x, self.state[: len(x)]), 1)))
        return self.state


rows, features, hidden = 64, 128, 32


def get_inputs():
    return [torch.rand(rows, features)]


def get_init_inputs():
    return [features, hidden]
"""
)


@pytest.fixture
def verdict(runner, tmp_path):
    """What is concluded of a candidate at a problem, with the problem's own model beside it."""

    def judge(source, written):
        suite = KernelBench({"level1/1": problem(source)}, runner, tmp_path)
        task = suite.task("level1/1")
        candidate = read_candidate(written, "new.py", task_names=("ModelNew",), task="ModelNew")
        cache = ExpectationCache(Policy())
        checks = EagerChecks(runner, cache, lambda task: suite.own_function(task.name))
        with CandidateSession(
            task, candidate, runner, cache, deadline_s=20, eager_checks=checks
        ) as session:
            *_, last = judge_cases(session, Plan(cases=6, compile=False))
        checks.close()
        assert isinstance(last, AttemptEnded)
        return last.attempt.verdict

    return judge


@pytest.mark.slow
def test_a_model_that_gives_an_earlier_result_again_is_found(verdict):
    found = verdict(LINEAR, KEEPS_ITS_RESULT)
    assert isinstance(found, Failed)
    assert found.kind == "kept_state"
    assert found.detail.startswith(
        "right in the first call, wrong in a later one of the same model: "
    )


@pytest.mark.slow
@pytest.mark.parametrize("source", [LINEAR, NORMALIZED, RECURRENT])
def test_a_model_that_keeps_what_its_problem_keeps_is_right(verdict, source):
    found = verdict(source, source.replace("class Model", "class ModelNew"))
    assert isinstance(found, Passed), found
