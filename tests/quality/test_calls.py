"""Ways of calling an operator that its prompt promises, and kernels that do not serve them."""

import pytest

from kerneltruth.engine.proof import prove
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.registry import TASKS


@pytest.fixture(scope="module")
def cache():
    return ExpectationCache(Policy())


def flagged(evaluator, cache, name, source, dtype="float32", cases=24):
    """The cases on which a function is flagged, with the verdicts."""
    task = TASKS[f"kernelbenchx/{name}"]
    candidate = read_candidate(source, "one.py", task_names=(name,), task=name)
    proof = prove(task, candidate, evaluator.runner, cache, plan=Plan(cases=cases, dtypes=(dtype,)))
    return [(flag.case, flag.verdict, flag.detail) for flag in proof.flagged]


ADD = """
import torch
def add(input, other, *, alpha=1, out=None):
    return torch.add(input, other, alpha=alpha, out=out)
"""
ONLY_TENSORS = """
import torch
def add(input, other, *, alpha=1, out=None):
    return torch.add(input, alpha * other.view(other.shape), out=out)
"""
IGNORES_OUT = """
import torch
def add(input, other, *, alpha=1, out=None):
    return torch.add(input, other, alpha=alpha)
"""
WIDENS = """
import torch
def add(input, other, *, alpha=1, out=None):
    if not torch.is_tensor(other):
        other = torch.tensor(other, dtype=torch.float64).reshape(1)
    return torch.add(input, other, alpha=alpha, out=out)
"""
NEGATIVE = """
import torch
def signbit(input, *, out=None):
    return torch.lt(input, 0, out=out)
"""


def test_pytorch_takes_numbers_and_out(evaluator, cache):
    assert flagged(evaluator, cache, "add", ADD) == []
    assert flagged(evaluator, cache, "add", ADD, "float16") == []


def test_a_number_in_the_place_of_a_tensor_may_not_be_refused(evaluator, cache):
    found = flagged(evaluator, cache, "add", ONLY_TENSORS)
    assert found
    assert all("_call=number other" in case for case, *_ in found)
    assert {verdict for _, verdict, _ in found} == {"runtime_error"}


def test_a_number_that_changes_the_dtype_is_found(evaluator, cache):
    found = flagged(evaluator, cache, "add", WIDENS)
    assert found
    assert all("_call=number other" in case for case, *_ in found)


def test_a_result_that_is_not_written_to_out_is_found(evaluator, cache):
    found = flagged(evaluator, cache, "add", IGNORES_OUT)
    assert found
    assert all("_call=out" in case for case, *_ in found)


def test_a_zero_has_a_sign(evaluator, cache):
    found = flagged(evaluator, cache, "signbit", NEGATIVE)
    assert any("signed_zeros" in case for case, *_ in found)


SINGLE = """
import torch
def logspace(start, end, steps, base=10.0, dtype=None, out=None):
    exponents = torch.linspace(start, end, steps)
    powers = torch.pow(base, exponents).to(dtype or torch.float32)
    return powers if out is None else out.copy_(powers)
"""
FLAT = """
import torch
def sum(input, dim, keepdim=False, dtype=None):
    if isinstance(dim, tuple):
        dims = sorted(d % input.ndim for d in dim)
        rows = input.movedim(dims, tuple(range(-len(dims), 0)))
        return rows.flatten(-len(dims)).sum(-1, keepdim=len(dims) < 3 and keepdim, dtype=dtype)
    return torch.sum(input, dim, keepdim=keepdim, dtype=dtype)
"""


def test_a_requested_dtype_is_that_of_the_arithmetic(evaluator, cache):
    found = flagged(evaluator, cache, "logspace", SINGLE)
    assert found
    assert all("dtype=torch.float64" in case for case, *_ in found)


def test_several_dims_at_once_are_kept_on_request(evaluator, cache):
    found = flagged(evaluator, cache, "sum", FLAT)
    assert found
    assert all("dim=(" in case and "keepdim=True" in case for case, *_ in found)


TILE_EXP = """
import torch
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * y
def fused_tile_exp(input, dims, *, out=None):
    result = Exp.apply(input.repeat(*dims) if len(dims) >= input.ndim else torch.tile(input, dims))
    return result if out is None else out.copy_(result)
"""
DETACHED = TILE_EXP.replace("Exp.apply(", "torch.exp(").replace("input.repeat", "input.data.repeat")
DETACHED = DETACHED.replace("torch.tile(input,", "torch.tile(input.data,")
WRONG_GRADIENT = TILE_EXP.replace("gradient * y", "gradient")


def test_a_gradient_of_its_own_passes(evaluator, cache):
    assert flagged(evaluator, cache, "fused_tile_exp", TILE_EXP) == []


def test_a_result_without_a_gradient_is_found(evaluator, cache):
    found = flagged(evaluator, cache, "fused_tile_exp", DETACHED)
    assert {verdict for _, verdict, _ in found} == {"runtime_error"}
    assert all("NoGradient" in detail and "_call=backward" in case for case, _, detail in found)


NO_GRAPH = """
import torch
def fused_mv_sigmoid_sub(input, vec, other, alpha=1, *, out=None):
    product = input.data @ vec.data
    result = torch.sub(torch.sigmoid(product), getattr(other, "data", other), alpha=alpha)
    return result if out is None else out.copy_(result)
"""


def test_a_lost_gradient_behind_a_sigmoid_is_found(evaluator, cache):
    found = flagged(evaluator, cache, "fused_mv_sigmoid_sub", NO_GRAPH, cases=30)
    assert found
    assert all("NoGradient" in detail for *_, detail in found)


def test_a_wrong_gradient_is_found(evaluator, cache):
    found = flagged(evaluator, cache, "fused_tile_exp", WRONG_GRADIENT)
    assert {verdict for _, verdict, _ in found} == {"fail"}
    assert all("gradient of input" in detail for *_, detail in found)
