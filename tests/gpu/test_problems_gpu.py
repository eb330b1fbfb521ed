"""Problems of KernelBench judged on a GPU: large references answer from there, in float64."""

import pytest
import torch

from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import SIZES
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache, expect
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runs.files import cache_folder
from kerneltruth.suites.catalog import opened
from kerneltruth.suites.kernelbench.published_problems import read_problems
from kerneltruth.suites.kernelbench.suite import KernelBench
from kerneltruth.suites.pytorch import own_function
from kerneltruth.tasks.registry import find

pytestmark = pytest.mark.gpu

DEVICE = "cuda:0"
MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, channels, 3)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.softmax(self.norm(self.conv(x)), dim=1)

channels = 32
side = 256

def get_inputs():
    return [torch.rand(16, channels, side, side)]

def get_init_inputs():
    return [channels]
"""


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    folder = tmp_path_factory.mktemp("problems")
    (folder / "level1").mkdir()
    (folder / "level1" / "1_Normalized.py").write_text(MODEL)
    with Runner(device=DEVICE) as runner, opened(f"kernelbench:{folder}", runner):
        yield runner, find("kernelbench/level1/1"), folder


def attempt_of(runner, task, candidate):
    cache = ExpectationCache(Policy())
    with CandidateSession(task, candidate, runner, cache, deadline_s=60) as session:
        *_, last = judge_cases(session, Plan(cases=2, compile=False))
    assert isinstance(last, AttemptEnded)
    return last.attempt


def test_the_first_case_has_the_files_own_sizes(problems):
    _, task, _ = problems
    sizes = next(generate(task, seed=1, count=1)).settings[SIZES]
    assert sizes.startswith("channels=32 side=256")


def test_a_reference_from_the_gpu_is_that_of_the_cpu(problems):
    _, task, folder = problems
    case = next(generate(task, seed=1, count=1))
    there = expect(task, case, Policy()).outputs[0]
    with Runner(device="cpu") as runner:
        on_cpu = KernelBench(read_problems(folder), runner, cache_folder("schemas")).task(
            "level1/1"
        )
        here = expect(on_cpu, case, Policy()).outputs[0]
    assert torch.allclose(there.reference, here.reference, rtol=1e-9, atol=1e-12)
    assert float((there.bound / here.bound).median()) < 4
    assert float((here.bound / there.bound).median()) < 4


def test_its_own_model_passes_and_a_wrong_one_fails(problems):
    runner, task, _ = problems
    own = own_function(task)
    attempt = attempt_of(runner, task, own)
    assert isinstance(attempt.verdict, Passed), attempt
    source = MODEL.replace("class Model(", "class ModelNew(").replace("dim=1", "dim=2")
    wrong = read_candidate(source, "new.py", task_names=("ModelNew",), task="ModelNew")
    assert isinstance(attempt_of(runner, task, wrong).verdict, Failed)
