"""Models with no place for the judge's weights have those that their constructors draw."""

import pytest
import torch
from torch import nn

from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.engine.evaluator import not_timed
from kerneltruth.explain.reproducer.script import BODY
from kerneltruth.oracle.attempt import AttemptEnded, CaseJudged, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.suites.kernelbench.suite import KernelBench

from .problems import HEAD, LINEAR, NORMALIZED, problem

pytestmark = pytest.mark.processes

NORM = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        return self.norm(x)


rows, features = 64, 256


def get_inputs():
    return [torch.rand(rows, features)]


def get_init_inputs():
    return [features]
"""
)
# As KernelBench's constructor leaves weight and bias, there is no need for them.
WITHOUT_WEIGHTS = (
    HEAD
    + """
class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features = features

    def forward(self, x):
        return nn.functional.layer_norm(x, (self.features,))
"""
)
TURNED = (
    HEAD
    + """
class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        layer = nn.Linear(features, outputs)
        self.both = nn.Parameter(torch.cat((layer.weight.t(), layer.bias[None])).detach())

    def forward(self, x):
        return torch.relu(x @ self.both[:-1] + self.both[-1])
"""
)
WITHOUT_STATISTICS = (
    HEAD
    + """
class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        off = x - x.mean(0)
        scale = self.w / (off.square().mean(0) + 1e-5).sqrt()
        return torch.relu(off * scale + self.b)
"""
)


@pytest.fixture
def judge(runner, tmp_path):
    """The attempt of a candidate at a problem, and the cases that it was judged on."""

    def judge(source, written, cases=12):
        suite = KernelBench({"level1/1": problem(source)}, runner, tmp_path)
        task = suite.task("level1/1")
        candidate = read_candidate(written, "new.py", task_names=("ModelNew",), task="ModelNew")
        with CandidateSession(
            task, candidate, runner, ExpectationCache(Policy()), deadline_s=20
        ) as session:
            *events, last = judge_cases(session, Plan(cases=cases, compile=False))
        assert isinstance(last, AttemptEnded)
        return last.attempt, [e.judgement.case for e in events if isinstance(e, CaseJudged)]

    return judge


@pytest.mark.slow
def test_a_model_that_needs_no_weights_is_judged_with_those_that_the_file_draws(judge):
    attempt, cases = judge(NORM, WITHOUT_WEIGHTS)
    assert isinstance(attempt.verdict, Passed), attempt.verdict
    assert attempt.own_weights.startswith("the model has no parameter for the weight norm.weight")
    assert attempt.cases == 12
    assert {c.absent for c in cases} == {("weights.norm.weight", "weights.norm.bias")}
    assert {c.dtype for c in cases} == {"float32"}
    assert cases[0].recipe == "own"
    assert cases[0].summary().endswith("own weights float32 own")
    assert not_timed(attempt, "cuda").outcome == "not_run"


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        WITHOUT_WEIGHTS.replace("(self.features,))", "(self.features,), eps=0.1)"),
        WITHOUT_WEIGHTS.replace("return ", "return 1.01 * "),
    ],
)
def test_such_a_model_is_convicted_where_it_is_wrong(judge, wrong):
    attempt, _ = judge(NORM, wrong)
    assert isinstance(attempt.verdict, Failed)
    assert attempt.verdict.kind == "value"


@pytest.mark.slow
def test_weights_in_another_form_are_equal_where_they_are_drawn_alike(judge):
    attempt, _ = judge(LINEAR, TURNED)
    assert isinstance(attempt.verdict, Passed), attempt.verdict
    attempt, _ = judge(LINEAR, TURNED.replace("layer =", "torch.rand(1)\n        layer ="))
    assert isinstance(attempt.verdict, Failed)


@pytest.mark.slow
def test_a_model_that_takes_the_judges_weights_gets_them_in_every_case(judge):
    attempt, cases = judge(LINEAR, LINEAR.replace("class Model", "class ModelNew"))
    assert isinstance(attempt.verdict, Passed)
    assert attempt.own_weights is None
    assert {c.absent for c in cases} == {()}


@pytest.mark.slow
def test_a_mode_that_kernelbench_does_not_look_at_takes_no_pass_away(judge):
    attempt, _ = judge(NORMALIZED, WITHOUT_STATISTICS, cases=40)
    assert isinstance(attempt.verdict, Passed), attempt.verdict
    assert attempt.own_weights is None
    reasons = " ".join(why for _, why in attempt.declined)
    assert "no parameter for the weight norm.running_mean" in reasons


class Normal(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.n_bias, self.n_weight = nn.Parameter(torch.zeros(1, features)), torch.rand(features)
        self.norm = nn.BatchNorm1d(features, affine=False)

    def forward(self, x):
        return self.norm(x) * self.n_weight + self.n_bias


def test_a_reproducing_script_calls_a_model_as_the_judge_does():
    space = {"DEVICE": "cpu", "KIND": "value", "__name__": "script"}
    exec(BODY, space)
    x = torch.rand(5, 3)
    given = {
        "get_init_inputs()": "[3]",
        "x": x,
        "model.called": repr({"training": False, "updated": ("norm.running_mean",)}),
        "model.filled": "{}",
        "weights.n.bias": torch.ones(3),
        "weights.norm.running_mean": torch.ones(3),
        "weights.other": None,
    }
    result, mean = space["model_called"](Normal, given)
    torch.manual_seed(0)
    drawn = torch.rand(3)
    torch.testing.assert_close(result, (x - 1) / (1 + 1e-5) ** 0.5 * drawn + 1)
    assert mean.tolist() == [1, 1, 1]
