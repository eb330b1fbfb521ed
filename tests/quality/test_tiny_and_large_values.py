"""A formula that loses its digits only at tiny or large values is found on promised inputs.

Some are only met in one mode, so each mode is tried with them.
"""

from dataclasses import replace

import pytest

from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.engine.requests import CASES
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.suites.pytorch import eager_of
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
# PyTorch's functions with a naive formula within, and in which tasks they stand.
NAIVE = {
    "gelu": """
def gelu(x, approximate="none"):
    if approximate == "none":
        return F.gelu(x)
    e = torch.exp(2 * 0.7978845608028654 * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + (e - 1) / (e + 1))
""",
    "batch_norm": """
def batch_norm(x, mean, var, weight=None, bias=None, training=True, momentum=0.1, eps=1e-5):
    result = F.batch_norm(x, mean, var, weight, bias, training, momentum, eps)
    if not training:
        return result
    dims, shape = (0, *range(2, x.ndim)), (1, -1) + (1,) * (x.ndim - 2)
    mean = x.mean(dims, keepdim=True)
    var = (x * x).mean(dims, keepdim=True) - mean * mean
    y = (x - mean) * torch.rsqrt(var.clamp_min(0) + eps)
    y = y if weight is None else y * weight.view(shape)
    return y if bias is None else y + bias.view(shape)
""",
    "layer_norm": """
def layer_norm(x, shape, eps):
    dims = tuple(range(-len(shape), 0))
    mean = x.mean(dims, keepdim=True)
    var = (x * x).mean(dims, keepdim=True) - mean * mean
    return (x - mean) * torch.rsqrt(var.clamp_min(0) + eps)
""",
    "instance_norm": """
def instance_norm(x, momentum, eps):
    mean = x.mean((2, 3), keepdim=True)
    var = (x * x).mean((2, 3), keepdim=True) - mean * mean
    return (x - mean) * torch.rsqrt(var.clamp_min(0) + eps)
""",
}
WITHIN = {
    "gelu": "gelu",
    "kernelbenchx/gelu": "gelu",
    "kernelbenchx/gelu_bf16": "gelu",
    "kernelbenchx/gelu_int8": "gelu",
    "kernelbenchx/fused_gelu_std": "gelu",
    "kernelbenchx/fused_gelu_min": "gelu",
    "kernelbenchx/min_gelu": "gelu",
    "kernelbenchx/batch_norm": "batch_norm",
    "kernelbenchx/fused_hardsigmoid_batch_norm": "batch_norm",
    "kernelbenchx/fused_sigmoid_batch_norm": "batch_norm",
    "tritonbench/silu_batch_norm": "batch_norm",
    # Behind a product, whose large factors TF32 would make as uncertain as the variance.
    "kernelbenchx/fused_dropout_relu_batch_norm_conv2d": "batch_norm",
    "kernelbenchx/fused_relu_batch_norm_conv2d": "batch_norm",
    "kernelbenchx/fused_instance_norm_selu_conv2d": "instance_norm",
    "kernelbenchx/fused_layer_norm_relu_linear": "layer_norm",
    "kernelbenchx/fused_silu_layer_norm_conv2d": "layer_norm",
}


def verdict(verdict_on, key, source=None, seed=0):
    """The verdict on a source, or on PyTorch's own function, in the cases of a run."""
    task = TASKS[key]
    candidate = eager_of(task)
    if source is not None:
        candidate = read_candidate(HEAD + source, "one.py", task_names=(task.name,), task=task.name)
        # What is planted in PyTorch's own functions imports them from the corpus.
        candidate = replace(candidate, trusted="kerneltruth.corpus" in source)
    plan = Plan(seed=seed, cases=CASES, promises=True, domain="core", compile=False)
    return verdict_on(key, candidate, plan)


@pytest.mark.sampled(by=lambda name, seed: [name])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PLANTED)
def test_the_naive_formula_is_caught(verdict_on, name, seed):
    found = verdict(verdict_on, f"kernelbenchx/{name}", PLANTED[name], seed)
    assert isinstance(found, Failed), found
    assert found.kind in ("value", "inf")


@pytest.mark.sampled(by=lambda key: [WITHIN[key]])
@pytest.mark.parametrize("key", WITHIN)
def test_the_naive_formula_of_one_mode_is_caught(verdict_on, key):
    name = WITHIN[key]
    right = eager_of(TASKS[key]).source
    assert f"F.{name}(" in right
    # It has its own name, so that a task's function of that name stays what it is.
    naive = NAIVE[name].replace(f"def {name}", f"def naive_{name}")
    found = verdict(verdict_on, key, naive + right.replace(f"F.{name}(", f"naive_{name}("))
    assert isinstance(found, Failed), found


@pytest.mark.slow
@pytest.mark.sampled(by=lambda key: [WITHIN.get(key, key)])
@pytest.mark.parametrize("key", [*(f"kernelbenchx/{name}" for name in PLANTED), *WITHIN])
def test_pytorch_is_right(verdict_on, key):
    assert verdict(verdict_on, key) == Passed()
