"""A formula that loses its digits only at tiny or large values is found on promised inputs."""

import pytest

from kerneltruth.commands.court import Job
from kerneltruth.commands.run import CASES
from kerneltruth.commands.suite_audit import eager_of
from kerneltruth.oracle.course import Plan
from kerneltruth.oracle.verdict import Failed, Passed
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.registry import TASKS

HEAD = "import torch\nimport torch.nn.functional as F\n\n"
PLANTED = {
    "log1p": """
def log1p(input, *, out=None):
    near = torch.where(input.abs() < 1e-3, torch.log(1 + input), torch.log1p(input))
    return near if out is None else out.copy_(near)
""",
    "log": """
def log(input, *, out=None):
    result = torch.where(input > 0, torch.log(input.clamp_min(1e-3)), torch.log(input))
    return result if out is None else out.copy_(result)
""",
    "cross_entropy": """
def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean"):
    logs = torch.log(torch.softmax(input, 1 if input.ndim > 1 else 0))
    return F.nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
""",
    "fused_cross_entropy_log_softmax": """
def fused_cross_entropy_log_softmax(
    input, target, dim=1, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    logs = torch.log(torch.softmax(input, dim)).movedim(dim, 1)
    return F.cross_entropy(
        logs,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
""",
}


def verdict(court, name, candidate, seed=0):
    key = f"kernelbenchx/{name}"
    plan = Plan(
        seed=seed, cases=CASES, promises=True, dtypes=("float32",), domain="core", compile=False
    )
    return court.hear(Job(name=name, task=key, candidate=candidate, plan=plan)).attempt.verdict


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PLANTED)
def test_the_naive_formula_is_caught(court, name, seed):
    candidate = read_candidate(HEAD + PLANTED[name], "one.py", task_names=(name,), task=name)
    found = verdict(court, name, candidate, seed)
    assert isinstance(found, Failed), found
    assert found.kind in ("value", "inf")


@pytest.mark.parametrize("name", PLANTED)
def test_pytorch_is_right(court, name):
    assert verdict(court, name, eager_of(TASKS[f"kernelbenchx/{name}"])) == Passed()
