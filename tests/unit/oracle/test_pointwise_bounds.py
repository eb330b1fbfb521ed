"""Where each element depends on its own input alone, large neighbours hide no error."""

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F
from msgspec.structs import replace
from scripted import case_of, declare

from kerneltruth.cases.strategies import generate
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import expect
from kerneltruth.tasks.registry import find


def expected(key, recipe="uniform", dtype="float32"):
    task = find(key)
    first = next(generate(task, seed=1, count=1, strategies=("default",)))
    made = expect(task, replace(first, recipe=recipe, dtype=dtype), Policy())
    assert made.unrefereeable is None
    return made.inputs.tensors[task.tensors[0].name], made.outputs[0]


def digamma(x, twelfth=1 / 12):
    """As a kernel computes it in float32: reflected, moved beyond 6, by its asymptotic series."""
    reflected = torch.where(x < 0.5, 1 - x, x)
    total = torch.zeros_like(x)
    for _ in range(12):
        small = reflected < 6
        total = torch.where(small, total - 1 / reflected, total)
        reflected = torch.where(small, reflected + 1, reflected)
    square = 1 / (reflected * reflected)
    series = square * (twelfth - square * (1 / 120 - square * (1 / 252 - square / 240)))
    value = total + reflected.log() - 0.5 / reflected - series
    return torch.where(x < 0.5, value - math.pi / torch.tan(math.pi * x), value)


def sigmoid_gelu(x):
    """The error function by its complement, which cancels where x is far below 0."""
    return x * 0.5 * torch.erfc(-x * math.sqrt(0.5))


@pytest.mark.parametrize(
    "recipe", ["uniform", "normal", "mixed_amplitude", "ties", "small", "large", "constant_rows"]
)
@pytest.mark.parametrize(
    ("key", "formula"),
    [
        ("kernelbenchx/digamma", digamma),
        ("kernelbenchx/reciprocal", lambda x: torch.exp2(-torch.log2(x.abs())) * x.sign()),
        ("kernelbenchx/gelu", sigmoid_gelu),
        ("kernelbenchx/sigmoid", lambda x: 0.5 * torch.tanh(0.5 * x) + 0.5),
        ("kernelbenchx/tanh", lambda x: 1 - 2 / (torch.exp(2 * x) + 1)),
        ("kernelbenchx/log1p", lambda x: torch.log(1 + x)),
        ("silu", lambda x: x / (1 + torch.exp2(-x * 1.4426950408889634))),
        ("softplus", lambda x: torch.where(x > 20, x, torch.log(1 + torch.exp(x)))),
        ("kernelbenchx/tanh", lambda x: 2 * torch.sigmoid(2 * x) - 1),
        ("elu", lambda x: torch.where(x > 0, x, torch.exp(x) - 1)),
        ("kernelbenchx/exp_sqrt", lambda x: torch.exp2(x * 0.7213475204444817)),
        ("kernelbenchx/cos", lambda x: 1 - 2 * torch.sin(x / 2) ** 2),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_formula_in_float32_is_right(key, formula, recipe):
    x, output = expected(key, recipe)
    got = formula(x).to(x.dtype)
    difference = output.difference(torch.where(output.rounded.isfinite(), got, output.rounded))
    assert difference.stats.num_exceeding == 0, difference.stats


def near_zero(task):
    """A call whose first row is close to 0, and what a formula of values about 1 makes of it."""
    x = torch.linspace(-2, 2, 64).reshape(4, 16)
    x[0] = -0.0243
    case = case_of(task, M=4, N=16)
    names = [spec.name for spec in task.tensors]
    made = expect(
        task, replace(case, literals=tuple((n, x.flatten().tolist()) for n in names)), Policy()
    )
    (output,) = made.outputs
    return x, output


TANH = declare("gate(x[M, N])", lambda x: torch.tanh(x))
GATED = declare("gated(x[M, N], y[M, N])", lambda x, y: torch.tanh(x) * y)


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize("task", [TANH, GATED])
def test_a_row_near_zero_is_held_to_no_less_than_the_others(task, foreign):
    # A foreign program may sum, as far as its task says.
    terms = "8" if foreign else None
    x, output = near_zero(dataclasses.replace(task, foreign=foreign, terms=terms))
    formula = 2 * torch.sigmoid(2 * x) - 1
    got = formula if task is TANH else formula * x
    assert output.difference(got).stats.num_exceeding == 0
    assert output.difference(got + 1e-6).wrong[0].all()


def test_a_row_near_zero_has_its_own_scale_where_rows_are_summed():
    summed = declare("summed(x[M, N])", lambda x: x - x.mean(-1, keepdim=True) / 2)
    for foreign in (False, True):
        _, output = near_zero(dataclasses.replace(summed, foreign=foreign))
        assert float(output.bound[0].max()) < 1e-7 < float(output.bound[-1].max())


def test_a_large_result_of_a_foreign_program_keeps_the_bound_of_its_row():
    task = declare("grows(x[M, N])", lambda x: torch.sinh(4 * x))
    _, output = near_zero(dataclasses.replace(task, foreign=True))
    share = output.bound / output.reference.abs().amax(-1, keepdim=True)
    assert float(share[1:].min()) > 2 * 2.0**-23


@pytest.mark.parametrize("recipe", ["uniform", "normal"])
@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("kernelbenchx/digamma", lambda x: digamma(x, twelfth=1 / 8)),
        ("kernelbenchx/reciprocal", lambda x: (1 / x) * (1 + 1e-4)),
        ("kernelbenchx/i0", lambda x: torch.special.i0(x) * (1 + 1e-5)),
    ],
    ids=["digamma", "reciprocal", "i0"],
)
def test_an_error_of_most_elements_shows_beside_large_neighbours(key, wrong, recipe):
    x, output = expected(key, recipe)
    share = output.difference(wrong(x)).stats.num_exceeding / x.numel()
    assert share > 0.5


IN_HALVES = {
    "silu": lambda x: x * torch.sigmoid(x),
    "elu": lambda x: torch.where(x > 0, x, torch.exp(x) - 1),
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x * 0.7071067811865476)),
    "kernelbenchx/rsqrt": lambda x: 1 / torch.sqrt(x),
    "kernelbenchx/selu": lambda x: (
        1.0507009873554805 * torch.where(x > 0, x, 1.6732632423543772 * (torch.exp(x) - 1))
    ),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("key", IN_HALVES)
def test_a_formula_that_rounds_each_step_to_half_precision_is_right(key, dtype):
    for recipe in ("uniform", "normal", "mixed_amplitude"):
        x, output = expected(key, recipe, dtype)
        assert output.difference(IN_HALVES[key](x)).stats.num_exceeding == 0


def test_where_rows_are_summed_an_element_counts_with_its_row():
    centered = declare("centered(x[M, N])", lambda x: x - x.mean(-1, keepdim=True))
    made = expect(centered, case_of(centered, M=2, N=64, recipe="large"), Policy())
    (output,) = made.outputs
    share = output.bound / output.reference.abs().amax(-1, keepdim=True)
    assert float(share.min()) > 2 * 2.0**-23


TAIL = torch.linspace(-14, -9, 64).reshape(4, 16)


def in_the_tail(reference):
    """What is expected of an activation where its result is far smaller than 1."""
    task = declare("tail(x[M, N])", reference)
    literals = ((task.tensors[0].name, TAIL.flatten().tolist()),)
    (output,) = expect(task, replace(case_of(task, M=4, N=16), literals=literals), Policy()).outputs
    return output


def sigmoid_tanh(x):
    return 2 / (1 + torch.exp(-2 * x)) - 1


@pytest.mark.parametrize(
    ("reference", "formula"),
    [
        (lambda x: F.mish(x), lambda x: x * sigmoid_tanh(torch.log(1 + torch.exp(x)))),
        (lambda x: F.silu(x), lambda x: x * 0.5 * (1 + torch.tanh(0.5 * x))),
        (lambda x: x * torch.sigmoid(x), lambda x: x * 0.5 * (1 + sigmoid_tanh(0.5 * x))),
        (lambda x: x * torch.tanh(F.softplus(x)), lambda x: x * torch.log(1 + torch.exp(x))),
    ],
    ids=["mish", "silu", "silu of sigmoid", "mish of softplus"],
)
def test_a_tail_composed_of_numbers_about_1_is_right_and_one_that_is_further_off_is_wrong(
    reference, formula
):
    output = in_the_tail(reference)
    assert output.difference(formula(TAIL)).stats.num_exceeding == 0
    # By a few ulps of 1 at most: not by the share that is left of a tail that is cut off at -9.
    assert output.difference(torch.zeros_like(TAIL)).stats.num_exceeding > 30
    assert output.difference(formula(TAIL) + 2e-5).wrong[0].all()


def test_a_logarithm_of_a_tail_keeps_its_bound():
    output = in_the_tail(lambda x: torch.log(torch.sigmoid(x)))
    assert float(output.bound.max()) < 1e-4
