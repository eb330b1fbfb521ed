"""What is formed in float32 before `dtype=torch.float64` converts it may be off as on a GPU."""

import pytest
import torch

from kerneltruth.documents.case import Case
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import expect
from kerneltruth.tasks.registry import TASKS

EPS = torch.finfo(torch.float32).eps


def promised(key, recipe, **given):
    """Inputs and the expected output of a case that asks for float64."""
    task = TASKS[key]
    sizes = {"L": 3, "M": 63, "N": 256, "K": 32, "O": 48}
    settings = {a.name: a.default for a in task.attributes} | {"dtype": "torch.float64"} | given
    case = Case(
        task=key,
        dims=tuple((d.symbol, sizes[d.symbol]) for d in task.dims),
        attributes=tuple(settings.items()),
        dtype="float32",
        recipe=recipe,
        seed=3,
    )
    expectation = expect(task, case, Policy())
    (output,) = expectation.outputs
    assert expectation.unrefereeable is None
    return expectation.inputs.tensors, output


def on_a_gpu(function, x, ulps, bias):
    """A function in float32 with random errors of this many ulps, and some upwards."""
    chance = torch.rand(x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    exact = function(x.double())
    return (exact * (1 + EPS * (bias + ulps * (2 * chance - 1)))).float().double()


@pytest.mark.parametrize("dim", [1, 0, None])
@pytest.mark.parametrize("recipe", ["negative", "normal"])
def test_exponentials_of_a_gpu_are_right_and_of_half_precision_are_not(recipe, dim):
    tensors, output = promised("kernelbenchx/fused_exp_mean", recipe, dim=dim)
    x = tensors["input"]
    for ulps, bias in ((2, 0), (1, 1), (0, 2), (0, -2)):
        assert not output.rejects(on_a_gpu(torch.exp, x, ulps, bias).mean(dim))
    assert output.rejects(x.exp().bfloat16().double().mean(dim))
    assert output.rejects((x.double().exp() * (1 + 1e-4)).mean(dim))


@pytest.mark.parametrize("recipe", ["uniform", "normal"])
@pytest.mark.parametrize("dim", [1, 0])
def test_logarithms_of_a_gpu_are_right_and_of_half_precision_are_not(recipe, dim):
    tensors, output = promised("kernelbenchx/fused_softmax_log", recipe, dim=dim)
    x = tensors["input"]
    for ulps, bias in ((1, 0), (0, 1), (0, -1)):
        assert not output.rejects(on_a_gpu(torch.log, x, ulps, bias).softmax(dim))
    assert output.rejects(x.log().bfloat16().double().softmax(dim))


@pytest.mark.parametrize("key", ["kernelbenchx/softmax", "kernelbenchx/mean"])
def test_what_is_converted_first_is_held_to_float64(key):
    tensors, output = promised(key, "normal", dim=-1)
    (x,) = tensors.values()
    one = torch.softmax if key.endswith("softmax") else torch.mean
    assert not output.rejects(one(x.double(), -1))
    assert output.rejects(one(x, -1).double())
