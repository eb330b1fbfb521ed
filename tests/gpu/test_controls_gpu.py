"""PyTorch's own function beside a candidate, and what a child claims, where a GPU runs both."""

import pytest

from kerneltruth.documents.verdict import Passed
from kerneltruth.engine.evaluator import EvaluationRequest
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.registry import find

pytestmark = pytest.mark.gpu

SPECTRAL_RADIUS = """
import torch

def spectral_norm_eig(A, *, out=None):
    return torch.amax(torch.linalg.eigvals(A).abs(), -1, out=out)
"""

WARPED = """
import torch.nn.functional as F

def grid_sample_with_affine(
    input, theta, size, mode="bilinear", padding_mode="zeros", align_corners=False
):
    grid = F.affine_grid(theta, list(size), align_corners)
    return F.grid_sample(input, grid, mode, padding_mode, align_corners)
"""

CLAIMS = """
import torch, triton

class UnsupportedHere(Exception):
    pass

UnsupportedHere.__module__ = "kerneltruth.runner.interpreter.unsupported"

@triton.jit
def kernel(x):
    pass

def relu(x):
    if x.shape[-1] > 64:
        raise UnsupportedHere("not here")
    return torch.relu(x)
"""


@pytest.fixture
def judge(evaluator):
    def judge(source, name, cases=48):
        task = find(name)
        candidate = read_candidate(
            source, f"{task.name}.py", task_names=(task.name,), task=task.name
        )
        plan = Plan(cases=cases, compile=False, deadline_s=60.0)
        return evaluator.evaluate(
            EvaluationRequest(name=task.name, task=name, candidate=candidate, plan=plan)
        ).attempt

    return judge


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (SPECTRAL_RADIUS, "kernelbenchx/spectral_norm_eig"),
        (WARPED, "kernelbenchx/grid_sample_with_affine"),
    ],
)
def test_a_fault_of_pytorch_itself_convicts_no_candidate(judge, source, name):
    attempt = judge(source, name)
    assert attempt.verdict == Passed()
    assert attempt.torch_only
    assert all("PyTorch's own function" in reason for reason in attempt.void)


def test_a_wrong_kernel_is_convicted_beside_the_control(judge):
    wrong = SPECTRAL_RADIUS.replace("torch.amax", "torch.amin")
    assert judge(wrong, "kernelbenchx/spectral_norm_eig").verdict.word == "fail"


def test_nothing_is_unsupported_by_an_interpreter_here(judge):
    attempt = judge(CLAIMS, "relu")
    assert attempt.verdict.word == "runtime_error"
    assert attempt.verdict.error == "UnsupportedHere"
