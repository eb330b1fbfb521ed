"""Every declaration is sound: references run, expressions evaluate, names are unique."""

import math
import warnings

import pytest
import torch

from kerneltruth.errors import InternalError, UserError
from kerneltruth.tasks.collection import by_key
from kerneltruth.tasks.core import TASKS
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import TensorSpec, evaluate, task

FLOAT_TASKS = (
    "relu",
    "leaky_relu",
    "sigmoid",
    "tanh",
    "silu",
    "gelu",
    "elu",
    "softplus",
    "softmax",
    "log_softmax",
    "layer_norm",
    "rms_norm",
    "l2_norm",
    "sum",
    "mean",
    "std",
    "row_max",
    "argmax",
    "logsumexp",
    "matmul",
    "addmm",
    "attention",
    "causal_attention",
)

RANGES = {"index": (0, 1), "probability": (0, 1), "unit": (-1, 1), "positive": (0.5, 2)}


def tensors(declared, sizes, dtype, generator):
    """Arguments at the default attributes, floats of `dtype`."""
    settings = {a.name: a.default for a in declared.attributes}
    arguments = {}
    for argument in declared.arguments:
        if not isinstance(argument, TensorSpec):
            arguments[argument.name] = settings[argument.name]
            continue
        shape = declared.shape(argument, sizes, settings)
        if argument.kind == "index":
            extent = evaluate(argument.extent, {**settings, **sizes})
            arguments[argument.name] = torch.randint(0, extent, shape, generator=generator)
        elif argument.kind in ("bool", "mask"):
            arguments[argument.name] = torch.ones(shape, dtype=torch.bool)
        elif argument.kind in ("int8", "int32", "int64"):
            drawn = torch.randint(1, 9, shape, generator=generator)
            arguments[argument.name] = drawn.to(getattr(torch, argument.kind))
        else:
            low, high = RANGES.get(argument.kind, (-1, 1))
            drawn = torch.rand(shape, generator=generator, dtype=torch.float64)
            arguments[argument.name] = (low + (high - low) * drawn).to(dtype)
    return arguments


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(7)


@pytest.mark.parametrize("name", TASKS)
def test_the_benchmark_shape_is_one_that_the_task_allows(name):
    declared = TASKS[name]
    settings = {a.name: a.default for a in declared.attributes}
    assert declared.allows(declared.benchmark.dims, settings)


@pytest.mark.parametrize("name", TASKS)
def test_the_work_model_evaluates_to_a_count(name):
    declared = TASKS[name]
    scope = {a.name: a.default for a in declared.attributes} | dict(declared.benchmark.dims)
    assert evaluate(declared.flops, scope) >= 0
    if declared.bytes is not None:
        assert evaluate(declared.bytes, {**scope, "itemsize": 4}) > 0


@pytest.mark.parametrize("name", TASKS)
def test_three_shapes_are_timed_of_which_one_is_quick_to_grade(name):
    declared = TASKS[name]
    settings = {a.name: a.default for a in declared.attributes}
    assert len(declared.perf) == 3
    scopes = [{**settings, **shape} for shape in declared.perf]
    assert all(declared.allows(s, s, to_time=True) for s in scopes)
    elements = [sum(math.prod(declared.shape(t, s, s)) for t in declared.tensors) for s in scopes]
    work = [evaluate(declared.flops, s) for s in scopes]
    assert elements == sorted(set(elements))
    assert work == sorted(work)
    assert elements[0] <= 2**24
    if declared.bytes is not None:
        assert evaluate(declared.bytes, {**scopes[0], "itemsize": 4}) > 0


def test_a_causal_query_costs_what_it_sees():
    flops = TASKS["causal_attention"].flops
    by_pairs = {(m, n): sum(min(i + 1, n) for i in range(m)) for m in (3, 5) for n in (2, 5, 7)}
    assert all(evaluate(flops, {"M": m, "N": n, "D": 1}) == 9 * p for (m, n), p in by_pairs.items())


@pytest.mark.parametrize("name", TASKS)
def test_the_reference_gives_every_declared_output_in_float64(name, generator):
    declared = TASKS[name]
    arguments = tensors(declared, declared.benchmark.dims, torch.float64, generator)
    result = declared.reference(**arguments)
    results = result if isinstance(result, tuple | list) else (result,)
    assert len(results) == len(declared.outputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", FLOAT_TASKS)
def test_the_reference_keeps_the_working_dtype(name, dtype, generator):
    declared = TASKS[name]
    arguments = tensors(declared, declared.benchmark.dims, dtype, generator)
    expected = dtype if declared.outputs[0].dtype == "same" else torch.int64
    assert declared.reference(**arguments).dtype == expected


@pytest.mark.parametrize("name", [n for n in FLOAT_TASKS if TASKS[n].admissible])
def test_admissible_formulations_agree_with_the_reference_in_float64(name, generator):
    declared = TASKS[name]
    arguments = tensors(declared, declared.benchmark.dims, torch.float64, generator)
    expected = declared.reference(**arguments)
    for formulation in declared.admissible:
        torch.testing.assert_close(formulation(**arguments), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FLOAT_TASKS)
def test_further_attribute_values_change_nothing_but_the_result(name, generator):
    declared = TASKS[name]
    arguments = tensors(declared, declared.benchmark.dims, torch.float64, generator)
    for attribute in declared.attributes:
        for value in attribute.values:
            result = declared.reference(**{**arguments, attribute.name: value})
            assert result.isfinite().all()


@pytest.mark.parametrize("name", FLOAT_TASKS)
def test_the_smallest_shapes_give_a_result_without_a_warning(name, generator):
    declared = TASKS[name]
    smallest = {d.symbol: d.low for d in declared.dims}
    arguments = tensors(declared, smallest, torch.float64, generator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = declared.reference(**arguments)
    outputs = result if isinstance(result, tuple) else (result,)
    assert outputs
    assert all(isinstance(output, torch.Tensor) for output in outputs)


@pytest.mark.parametrize(
    "name", [n for n in FLOAT_TASKS if any(t.optional for t in TASKS[n].tensors)]
)
def test_optional_tensors_may_be_left_out(name, generator):
    declared = TASKS[name]
    arguments = tensors(declared, declared.benchmark.dims, torch.float64, generator)
    arguments |= {t.name: None for t in declared.tensors if t.optional}
    assert declared.reference(**arguments).isfinite().all()


def test_the_mean_of_nothing_is_nan():
    assert TASKS["mean"].reference(torch.empty(2, 0), dim=-1, keepdim=False).isnan().all()


def test_one_observation_has_no_unbiased_deviation():
    x = torch.tensor([[3.0]])
    assert TASKS["std"].reference(x, dim=-1, correction=1, keepdim=False).isnan().all()


def test_a_zero_row_has_a_zero_direction():
    result = TASKS["l2_norm"].reference(torch.zeros(1, 4), eps=1e-6)
    assert result.tolist() == [[0.0, 0.0, 0.0, 0.0]]


def test_addmm_does_not_read_its_input_when_beta_is_zero():
    nan, one = torch.full((1, 1), torch.nan), torch.ones(1, 1)
    assert TASKS["addmm"].reference(nan, one, one, beta=0.0, alpha=1.0).item() == 1.0


def test_a_causal_query_sees_no_later_key():
    q, v = torch.ones(2, 1), torch.tensor([[1.0], [5.0], [9.0]])
    k = torch.zeros(3, 1)
    assert TASKS["causal_attention"].reference(q, k, v).tolist() == [[1.0], [3.0]]


def test_an_unknown_task_is_answered_with_the_nearest_names():
    with pytest.raises(UserError, match=r"unknown task 'sofmax'; nearest: softmax"):
        find("sofmax")


def test_find_gives_the_task_of_that_name():
    assert find("gelu") is TASKS["gelu"]


def test_two_tasks_of_one_name_are_refused():
    twin = task(
        "f(x[N])",
        category="Math",
        dims={"N": "batch"},
        reference=lambda x: x,
        description="x",
        flops="N",
        benchmark={"N": 4},
    )
    with pytest.raises(InternalError, match="two tasks are named 'f'"):
        by_key([twin, twin])
