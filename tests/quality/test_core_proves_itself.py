"""The core's tasks: each has a function of plain PyTorch, called as declared, which is right."""

import ast

import pytest

from kerneltruth.corpus.eager import eager_source
from kerneltruth.engine.proof import idle_attributes, idle_dims, prove
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.suites.pytorch import eager_of
from kerneltruth.tasks.core import FOLDER, TASKS
from kerneltruth.tasks.registry import eager_modules, find


@pytest.fixture(scope="module")
def cache():
    return ExpectationCache(Policy())


def functions_of(module):
    """The public functions of a file of plain PyTorch, by name."""
    tree = ast.parse(eager_source(module))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: node for node in found if not node.name.startswith("_")}


def test_a_file_has_a_function_for_each_task_and_no_other():
    for module in FOLDER.modules:
        entries = {task.entry for task in FOLDER.tasks_of(module)}
        assert functions_of(f"core/{module}").keys() == entries, module


def test_a_function_has_the_signature_of_its_task():
    for name, task in TASKS.items():
        given = functions_of(eager_modules("core")[name])[task.entry].args
        assert tuple(a.arg for a in given.args) == task.call_order(), name
        defaults = [ast.literal_eval(node) for node in given.defaults]
        absent = [None for tensor in task.tensors if tensor.optional]
        assert defaults == [*absent, *(a.default for a in task.attributes)], name


def test_every_attribute_and_the_last_element_of_every_dim_count():
    idle = {n: (*idle_attributes(task), *idle_dims(task)) for n, task in TASKS.items()}
    assert {name: found for name, found in idle.items() if found} == {}


@pytest.mark.slow
@pytest.mark.sampled(by=lambda name: [TASKS[name].category])
@pytest.mark.parametrize("name", TASKS)
def test_pytorch_is_right(name, evaluator, cache):
    task = find(name)
    proof = prove(
        task, eager_of(task), evaluator.runner, cache, plan=Plan(cases=3, dtypes=task.dtypes[:1])
    )
    assert proof.flagged == []
    assert proof.holds


SWALLOWS = """
import torch
import torch.nn.functional as F
def causal_attention(q, k, v):
    out = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    return torch.nan_to_num(out, nan=0.0)
"""


def test_an_attention_that_swallows_nan_is_flagged(evaluator, cache):
    candidate = read_candidate(
        SWALLOWS, "swallows.py", task_names=("causal_attention",), task="causal_attention"
    )
    task = find("causal_attention")
    proof = prove(
        task, candidate, evaluator.runner, cache, plan=Plan(cases=48, dtypes=("float32",))
    )
    assert not proof.holds
    assert all(flag.verdict == "fail" for flag in proof.flagged)
