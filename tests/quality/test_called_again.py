"""Faults that no single call shows: state that calls leave behind, and a fixed seed."""

import pytest
from msgspec.structs import replace

from kerneltruth.cases.materialize import materialize
from kerneltruth.cases.published import published_case
from kerneltruth.documents.verdict import Failed, Hack, Passed
from kerneltruth.engine.evaluator import EvaluationRequest
from kerneltruth.oracle.in_place import AS_BEFORE, STALE
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.registry import TASKS


def verdict(evaluator, key, source, cases=10, contract="core", domain="extended"):
    name = TASKS[key].name
    candidate = read_candidate(source, "one.py", task_names=(name,), task=name)
    plan = Plan(cases=cases, contract=contract, compile=False, dtypes=("float32",), domain=domain)
    return evaluator.evaluate(
        EvaluationRequest(name="one", task=key, candidate=candidate, plan=plan)
    ).attempt.verdict


KEEPS_THE_FIRST = """
import torch
kept = {}
def relu(input, inplace=False):
    key = tuple(input.shape)
    if key not in kept:
        kept[key] = torch.relu(input).clone()
        return torch.relu(input)
    return kept[key].clone()
"""
COUNTS_CALLS = """
import torch
calls = 0
def relu(input, inplace=False):
    global calls
    calls += 1
    return torch.relu(input) * (1.0 if calls <= 10 else 1.5)
"""
KEEPS_IN_THE_MODEL = """
import torch
class relu(torch.nn.Module):
    def __init__(self, inplace=False):
        super().__init__()
        self.kept = None
    def forward(self, input):
        if self.kept is None:
            self.kept = torch.relu(input).clone()
        return self.kept.clone()
"""
DROPS = """
import torch
def fused_dropout_sigmoid_linear(input, weight, bias=None, p=0.5, training=True, inplace=False):
    product = torch.nn.functional.linear(input, weight, bias)
    return torch.dropout(torch.sigmoid(product), p, training)
"""
FIXED = DROPS.replace("    product", "    torch.manual_seed(42)\n    product")
AT_IMPORT = """
import torch
generator = torch.Generator().manual_seed(7)
def rand(*size, generator=None, out=None, dtype=None):
    generator = torch.Generator().manual_seed(7)
    return torch.rand(*size, generator=generator, out=out, dtype=dtype)
"""
FRESH = """
import torch
def rand(*size, generator=None, out=None, dtype=None):
    seed = int(torch.randint(2**31, ()))
    own = torch.Generator().manual_seed(seed)
    return torch.rand(*size, generator=own, out=out, dtype=dtype)
"""
LINEAR = "kernelbenchx/fused_dropout_sigmoid_linear"


@pytest.mark.parametrize("source", [KEEPS_THE_FIRST, COUNTS_CALLS, KEEPS_IN_THE_MODEL])
def test_state_between_calls_is_found(evaluator, source):
    found = verdict(evaluator, "kernelbenchx/relu", source)
    assert isinstance(found, Failed)
    assert found.kind == "kept_state"
    assert "right in the first call, wrong in a later one" in found.detail


@pytest.mark.parametrize(("key", "source"), [(LINEAR, FIXED), ("kernelbenchx/rand", AT_IMPORT)])
def test_a_fixed_seed_is_found(evaluator, key, source):
    found = verdict(evaluator, key, source)
    assert isinstance(found, Failed)
    assert found.kind == "same_draw"
    assert "11 calls" in found.detail


@pytest.mark.parametrize(("key", "source"), [(LINEAR, DROPS), ("kernelbenchx/rand", FRESH)])
def test_a_kernel_that_draws_new_numbers_passes(evaluator, key, source):
    assert isinstance(verdict(evaluator, key, source), Passed)


BY_ADDRESS = """
import torch
last = [None, None]
def relu(input, inplace=False):
    key = input.data_ptr(), tuple(input.shape), input.dtype, input.stride(){more}
    if last[0] != key:
        last[:] = [key, torch.relu(input)]
    return last[1].clone()
"""
BY_SOME_VALUES = """
import torch
known = {}
def relu(input, inplace=False):
    key = tuple(input.shape), input.dtype, *input.flatten()[:3].tolist()
    if key not in known or any(v != v for v in key[2:]):
        known[key] = torch.relu(input)
    return known[key].clone()
"""
OPERAND_BY_ADDRESS = """
import torch
packed = {}
def matmul(tensor1, tensor2):
    key = tensor2.data_ptr(), tuple(tensor2.shape), tensor2.dtype, tensor2.stride()MORE
    if packed.get("key") != key:
        packed.update(key=key, of=tensor2, value=tensor2.clone())
    return tensor1 @ packed["value"]
"""
# Keeps memory by address, and computes in it anew.
WORKSPACE_BY_ADDRESS = """
import torch
spaces = {}
def relu(input, inplace=False):
    key = input.data_ptr(), tuple(input.shape), input.dtype
    if key not in spaces:
        spaces[key] = torch.empty(input.shape, dtype=input.dtype)
    return spaces[key].copy_(torch.relu(input)).clone()
"""


@pytest.mark.parametrize(
    "source",
    [
        BY_ADDRESS.format(more=""),
        BY_ADDRESS.format(more=", input._version"),
        BY_SOME_VALUES,
    ],
    ids=["address", "address and version", "some values"],
)
def test_a_result_that_is_kept_by_where_or_what_its_input_is_is_a_hack(evaluator, source):
    found = verdict(evaluator, "kernelbenchx/relu", source, domain="core")
    assert isinstance(found, Hack), found
    assert found.kind == "kept_result"
    assert AS_BEFORE in found.detail


def test_an_operand_that_is_kept_by_its_address_is_wrong_and_no_hack(evaluator):
    source = OPERAND_BY_ADDRESS.replace("MORE", "")
    found = verdict(evaluator, "matmul", source, domain="core")
    assert (found.word, found.kind) == ("fail", "kept_state")
    assert STALE in found.detail


@pytest.mark.parametrize(
    ("key", "source"),
    [
        ("matmul", OPERAND_BY_ADDRESS.replace("MORE", ", tensor2._version")),
        ("kernelbenchx/relu", WORKSPACE_BY_ADDRESS),
    ],
    ids=["an operand by its version", "memory by its address"],
)
def test_what_pytorch_promises_of_versions_may_be_relied_on(evaluator, key, source):
    assert isinstance(verdict(evaluator, key, source, domain="core"), Passed)


WRONG_ON_ONE = """
import torch
def relu(input, inplace=False):
    result = torch.relu(input)
    return result + 1 if input.numel() and float(input.reshape(-1)[0]) == {value!r} else result
"""
IGNORES_STRIDES = """
import torch
def fused_hardshrink_dropout(input, p=0.5, training=True, inplace=False, lambd=0.5):
    packed = torch.empty(input.shape).stride()
    flat = torch.as_strided(input, input.shape, packed, input.storage_offset())
    return torch.nn.functional.hardshrink(torch.dropout(flat, p, training), lambd)
"""


def test_what_a_fresh_child_has_wrong_too_is_no_state_and_no_pass(evaluator):
    task = TASKS["kernelbenchx/relu"]
    first = published_case(task, seed=0, device="cpu")
    inputs = materialize(task, replace(first, seed=first.seed ^ 3))
    value = float(inputs.tensors["input"].reshape(-1)[0])
    found = verdict(evaluator, task.key, WRONG_ON_ONE.format(value=value))
    assert isinstance(found, Failed)
    assert found.kind == "value"


def test_a_random_kernel_that_ignores_strides_is_said_to(evaluator):
    key = "kernelbenchx/fused_hardshrink_dropout"
    found = verdict(evaluator, key, IGNORES_STRIDES, cases=24, contract="torch")
    assert isinstance(found, Failed)
    assert found.kind == "assumes_contiguous"
    assert found.inputs == ("input",)


RIGHT_ON_EQUAL_ROWS = """
import torch
def quantize_int8_rows(input):
    x = input.float()
    scale = x.abs().amax() / 127 if x.numel() else x.new_zeros(())
    codes = torch.where(scale == 0, 0.0, x / scale).round().nan_to_num(nan=0.0)
    return codes.to(torch.int8), scale.expand(len(x)).contiguous()
"""


def test_what_is_right_only_on_rows_that_share_memory_is_called_again(evaluator):
    ended = verdict(evaluator, "quantize_int8_rows", RIGHT_ON_EQUAL_ROWS, cases=40)
    assert ended.kind == "value"
