"""The suites' tasks: all there, and PyTorch itself is right on them."""

import ast
from collections import Counter
from dataclasses import replace

import pytest

from kerneltruth.cases.strategies import generate
from kerneltruth.corpus.eager import eager_source
from kerneltruth.engine.proof import idle_attributes, idle_dims, prove
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.suites.pytorch import eager_candidate
from kerneltruth.tasks.registry import eager_modules, tasks_of
from kerneltruth.tasks.spec import Attribute, Derived, evaluate

SUITES = ("kernelbenchx", "tritonbench", "earlier")
TASKS = {key: task for suite in SUITES for key, task in tasks_of(suite).items()}
MODULES = {key: module for suite in SUITES for key, module in eager_modules(suite).items()}

# What KernelBenchX says of itself: 176 tasks in 15 categories.
COUNTS = {
    "Activation": 10,
    "Convolution": 2,
    "Fusion": 60,
    "Index": 6,
    "LinearAlgebra": 17,
    "Loss": 6,
    "Math": 36,
    "MatrixMultiply": 10,
    "Normalization": 5,
    "Optimizer": 5,
    "Pooling": 2,
    "Quantization": 6,
    "Random": 2,
    "Reduce": 6,
    "SpatialOps": 3,
}
ENTRIES = {
    "AdamW": "adamw_step",
    "Lion": "lion_step",
    "RMSProp": "rmsprop_step",
    "SGD": "sgd_step",
}
# And those of TritonBench-T's tasks that it has not, or not alike.
OWN_COUNTS = {
    "Fusion": 7,
    "Index": 1,
    "LinearAlgebra": 2,
    "Math": 3,
    "MatrixMultiply": 1,
    "Optimizer": 1,
    "Reduce": 2,
}
# What by contract has no part in a result: where it lies, how it is computed, or that of a choice
# which the contract judges. Classes of a real matrix, and of int8, that do not differ.
IDLE = {
    "determinant_via_qr": ("mode",),
    "expand_where": ("_kept",),
    "fused_bmm_rmsnorm_gelu_dropout": ("_shape",),
    "fused_bmm_rmsnorm_gelu_dropout_sub": ("_shape",),
    "fused_embedding_add_tanh": ("padding_idx", "scale_grad_by_freq"),
    "fused_layer_norm_relu_linear": ("elementwise_affine",),
    "fused_mv_logsoftmax_dropout": ("dim",),
    "fused_repeat_interleave_log_softmax": ("_sized",),
    "fused_transformer_block": ("dropout_p",),
    "gelu_int8": ("approximate",),
    "ldl_factor": ("hermitian",),
    "least_squares_qr": ("mode",),
    "low_rank_svd_approximation": ("full_matrices",),
    "pseudoinverse_svd": ("full_matrices",),
    "solve_symmetric_ldl": ("hermitian",),
}
# It multiplies the first two of all rows.
IDLE_DIMS = {"matrix_multiply_and_row_dot": ("M",)}


@pytest.fixture(scope="module")
def cache():
    return ExpectationCache(Policy())


def parameters_of(key):
    """The parameters of the task's eager function, which has the published signature."""
    tree = ast.parse(eager_source(MODULES[key]))
    entry = next(
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == TASKS[key].entry
    )
    given = entry.args
    named = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    if given.vararg:
        named += [given.vararg.arg, *(t.name for t in TASKS[key].tensors)]
    return named


@pytest.mark.parametrize(
    ("suite", "counts"), [("kernelbenchx", COUNTS), ("tritonbench", OWN_COUNTS)]
)
def test_every_task_of_the_suite_is_declared(suite, counts):
    assert Counter(task.category for task in tasks_of(suite).values()) == counts


def test_entries_are_named_as_published():
    other = {t.name: t.entry for t in TASKS.values() if t.entry != t.name}
    assert other == ENTRIES


def every_task(found):
    """What a function finds of each task, where it finds anything.

    A test for each task would take longer than what it tests.
    """
    return {key: what for key, task in TASKS.items() if (what := found(task))}


def of_keys(known):
    """What is known of tasks by name, as `every_task` has it."""
    return {key: known[task.name] for key, task in TASKS.items() if task.name in known}


@pytest.mark.slow
def test_every_attribute_matters():
    attributes = lambda task: tuple(n for n in idle_attributes(task) if n != "inplace")
    assert every_task(attributes) == of_keys(IDLE)


@pytest.mark.slow
def test_the_last_element_of_every_dim_counts():
    assert every_task(lambda task: tuple(idle_dims(task))) == of_keys(IDLE_DIMS)


def test_a_kernel_can_be_written_from_the_declaration():
    def lacks(task):
        settings = {a.name: a.default for a in task.attributes}
        scope = task.scope(task.benchmark.dims, settings)
        said = {
            "a description": len(task.description) > 80,
            "a benchmark that it allows": task.allows(task.benchmark.dims, settings),
            "work that can be counted": evaluate(task.flops, scope) >= 0,
        }
        return [what for what, holds in said.items() if not holds]

    assert every_task(lacks) == {}


def test_shapes_to_time_are_allowed_and_grow():
    def wrong(task):
        settings = {a.name: a.default for a in task.attributes}
        sizes = [
            sum(_count(task.shape(t, shape, settings)) for t in task.tensors) for shape in task.perf
        ]
        work = [evaluate(task.flops, task.scope(shape, settings)) for shape in task.perf]
        said = {
            "their number": 2 <= len(task.perf) <= 4,
            "not allowed": all(task.allows(s, settings, to_time=True) for s in task.perf),
            "no order": sorted(sizes) == sizes,
            "no growth": sizes[-1] > sizes[0] or work[-1] > work[0],
        }
        return [what for what, holds in said.items() if not holds]

    assert every_task(wrong) == {}


def _count(shape):
    total = 1
    for n in shape:
        total *= n
    return total


def test_arguments_are_called_as_published():
    def unknown(task):
        passed = [
            a.name
            for a in task.arguments
            if isinstance(a, Attribute | Derived) and not getattr(a, "hidden", False)
        ]
        passed += [t.member_of or t.name for t in task.tensors]
        known = {*parameters_of(task.key)}
        return [name for name in passed if not name.startswith("_") and name not in known]

    assert every_task(unknown) == {}


@pytest.mark.slow
def test_every_strategy_that_can_has_a_case():
    def without_a_case(task):
        some = any(len(a.values) > 1 for a in task.attributes)
        strategies = {"default", "boundary"} | ({"attributes"} if some else set())
        return strategies - {case.strategy for case in generate(task, seed=0, count=40)}

    assert every_task(without_a_case) == {}


def traits(key):
    """What a task has in common with others that are judged alike."""
    task = TASKS[key]
    return (task.suite, task.category), *(output.compare for output in task.outputs)


@pytest.mark.slow
@pytest.mark.sampled(by=traits)
@pytest.mark.parametrize("key", TASKS)
def test_pytorch_is_right(key, evaluator, cache):
    task = TASKS[key]
    candidate = eager_candidate(task, MODULES[key])
    plan = Plan(cases=3, dtypes=task.dtypes[:1])
    proof = prove(task, candidate, evaluator.runner, cache, plan=plan)
    assert proof.flagged == []
    assert proof.holds


IN_TWO_STEPS = """
import torch
def product(input, weight, bias):
    rounded = input @ weight.T
    return rounded if bias is None else rounded + bias
def fused_tanh_linear(input, weight, bias=None):
    return torch.tanh(product(input, weight, bias))
def fused_dropout_sigmoid_linear(input, weight, bias=None, p=0.5, training=True, inplace=False):
    return torch.dropout(torch.sigmoid(product(input, weight, bias)), p, training)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fused_tanh_linear", "fused_dropout_sigmoid_linear"])
def test_a_bias_may_be_added_to_a_rounded_product(name, evaluator, cache):
    task = TASKS[f"kernelbenchx/{name}"]
    candidate = read_candidate(IN_TWO_STEPS, "two.py", task_names=(name,), task=name)
    proof = prove(
        task, candidate, evaluator.runner, cache, plan=Plan(cases=24, dtypes=("float16",))
    )
    assert proof.flagged == []


BROKEN = """
import torch
def tanh(input_tensor, out_tensor=None):
    return torch.tanh(input_tensor) * 1.01
"""


def test_a_broken_function_is_flagged(evaluator, cache):
    task = TASKS["kernelbenchx/tanh"]
    candidate = read_candidate(BROKEN, "broken.py", task_names=("tanh",), task="tanh")
    proof = prove(task, candidate, evaluator.runner, cache, plan=Plan(cases=4, dtypes=("float32",)))
    assert not proof.holds
    assert all(flag.verdict == "fail" for flag in proof.flagged)


def test_a_contract_that_nothing_breaks_proves_nothing(evaluator, cache):
    task = TASKS["kernelbenchx/tanh"]
    (output,) = task.outputs
    lax = replace(
        task,
        name="lax",
        outputs=(replace(output, compare="claims"),),
        claims=lambda evidence: (),
    )
    candidate = read_candidate(BROKEN, "broken.py", task_names=("tanh",), task="tanh")
    proof = prove(lax, candidate, evaluator.runner, cache, plan=Plan(cases=4, dtypes=("float32",)))
    assert not proof.holds
    assert proof.unrefereeable


AS_TORCH_HAS_IT = """
import torch
def fused_sum_std(input, dim=None, keepdim=False, dtype=None, correction=1, out=None):
    spread = torch.sum(input, dim=dim, keepdim=keepdim, dtype=dtype).std(correction=correction)
    return spread if out is None else out.copy_(spread)
"""


@pytest.mark.filterwarnings("ignore:std")
def test_the_spread_of_one_sum_may_be_nan_as_well_as_0(evaluator, cache):
    task = TASKS["kernelbenchx/fused_sum_std"]
    name = task.name
    candidate = read_candidate(AS_TORCH_HAS_IT, "torch.py", task_names=(name,), task=name)
    proof = prove(
        task, candidate, evaluator.runner, cache, plan=Plan(cases=24, dtypes=("float32",))
    )
    assert proof.flagged == []
