"""Functions of two tensors against Python's own arithmetic and mpmath."""

import math
import operator

import mpmath
import pytest
import torch

from kerneltruth.tasks.kernelbenchx.math_pairs import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
NUMBERS = [-7.25, -2.0, -0.5, 0.1, 1.0, 3.0, 9.75]


def loop(function, one, other):
    """The function of every pair of two lists."""
    return torch.tensor([[function(a, b) for b in other] for a in one], dtype=torch.float64)


def row(values):
    return torch.tensor(values, dtype=torch.float64)


def column(values):
    return row(values).unsqueeze(1)


@pytest.mark.parametrize(
    ("name", "scalars", "function"),
    [
        ("add", {"alpha": 1}, operator.add),
        ("add", {"alpha": -0.5}, lambda a, b: a - 0.5 * b),
        ("sub", {"alpha": 1}, operator.sub),
        ("sub", {"alpha": 2.0}, lambda a, b: a - 2 * b),
        ("mul", {}, operator.mul),
        ("div", {"rounding_mode": None}, operator.truediv),
        ("div", {"rounding_mode": "trunc"}, lambda a, b: math.trunc(a / b)),
        ("div", {"rounding_mode": "floor"}, lambda a, b: a // b),
    ],
)
def test_broadcast_arithmetic_is_that_of_python(name, scalars, function):
    got = TASKS[name].reference(column(NUMBERS), row(NUMBERS), **scalars)
    torch.testing.assert_close(got, loop(function, NUMBERS, NUMBERS), rtol=1e-15, atol=0)


@pytest.mark.parametrize("exponent", [2.0, 3.0, -1.0, 0.5, -0.5, 1.5, 4.0, 0.0, 2])
def test_powers_are_those_of_python(exponent):
    got = TASKS["pow"].reference(row(NUMBERS), exponent)
    powers = [x**exponent for x in NUMBERS]
    want = [math.nan if isinstance(p, complex) else p for p in powers]
    torch.testing.assert_close(got, row(want), rtol=1e-14, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "dtype", [torch.int32, torch.int64, torch.int16, torch.int8, torch.uint8, torch.bool]
)
def test_bitwise_and_is_that_of_python(dtype):
    values = [0, 1, 85, 127]
    got = TASKS["bitwise_and"].reference(
        torch.tensor(values, dtype=dtype).unsqueeze(1), torch.tensor(values, dtype=dtype)
    )
    numbers = [bool(v) for v in values] if dtype is torch.bool else values
    want = [[a & b for b in numbers] for a in numbers]
    assert got.tolist() == want


def test_the_bits_of_a_float_are_those_of_its_whole_part():
    x = torch.tensor([0.7, -1.2, 0.0, -0.0, -99.9, 6.5])
    other = torch.tensor([1, -1, 1, 1, 127, 3], dtype=torch.int8)
    signs, bits = TASKS["signbit_bitwise_and"].reference(x, other)
    assert signs.tolist() == [False, True, False, True, True, False]
    want = [math.trunc(a) & b for a, b in zip(x.tolist(), other.tolist(), strict=True)]
    assert bits.tolist() == want


def test_zeta_agrees_with_mpmath():
    exponents, shifts = [1.01, 1.5, 2.0, 3.7, 11.0, 24.0], [0.875, 1.0, 1.7, 5.0, 24.0]
    got = TASKS["zeta"].reference(column(exponents), row(shifts))
    with mpmath.workdps(30):
        want = loop(lambda x, q: float(mpmath.zeta(x, q)), exponents, shifts)
    torch.testing.assert_close(got, want, rtol=1e-11, atol=0)


def test_zeta_has_a_pole_at_one_and_is_undefined_below():
    x, q = torch.tensor([1.0, 0.9, math.nan]), torch.tensor([2.0, 2.0, 2.0])
    got = TASKS["zeta"].reference(x, q)
    assert got.tolist() == pytest.approx([math.inf, math.nan, math.nan], nan_ok=True)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "bitwise_and", "zeta"])
def test_every_form_of_the_inputs_broadcasts(name):
    task = TASKS[name]
    sizes = {"M": 3, "N": 5}
    (forms,) = (a.values for a in task.attributes if a.name == "_form")
    for form in forms:
        shapes = [task.shape(t, sizes, {"_form": form}) for t in task.tensors]
        wanted = {"flat": (15,), "deep": (3, 2, 5)}.get(form, (3, 5))
        assert torch.broadcast_shapes(*shapes) == wanted
