"""Functions of one argument against the standard library and SciPy."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special
import torch

from kerneltruth.tasks.claims import Evidence
from kerneltruth.tasks.kernelbenchx.math_pointwise import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
POINTS = [*np.linspace(-9.7, 9.9, 57), 0.0, 1.0, -1.0, 0.25, 1e-8, -1e-8, 1e-30, 600.0]
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan]

# Each by a library that PyTorch does not use; mpmath rounds once.
INDEPENDENT = {
    "abs": math.fabs,
    "asin": math.asin,
    "cos": math.cos,
    "erf": math.erf,
    "floor": math.floor,
    "log": math.log,
    "log1p": math.log1p,
    "logit": lambda x: float(scipy.special.logit(x)),
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: float(1 / mpmath.sqrt(x)) if x >= 0 else math.nan,
    "exp_sqrt": lambda x: float(mpmath.sqrt(mpmath.exp(x))),
    "sqrt_exp": lambda x: float(mpmath.exp(mpmath.sqrt(x))) if x >= 0 else math.nan,
    "sqrt_tanh": lambda x: float(mpmath.tanh(mpmath.sqrt(x))) if x >= 0 else math.nan,
    "signbit": lambda x: math.copysign(1, x) < 0,
    "trunc": math.trunc,
}


def expected(function, points):
    """The function of each point, NaN outside of its domain."""
    values = []
    for x in points:
        try:
            values.append(float(function(x)))
        except (ValueError, ZeroDivisionError):
            values.append(math.nan)
    return torch.tensor(values, dtype=torch.float64)


def reference(name, values, **scalars):
    settings = {a.name: a.default for a in TASKS[name].attributes if not a.hidden}
    (argument,) = (t.name for t in TASKS[name].tensors)
    return TASKS[name].reference(**{argument: values}, **settings | scalars)


def assert_agrees(got, want):
    # Where the independent function refuses (a pole or NaN), PyTorch's value says nothing.
    known = ~want.isnan()
    assert known.any()
    torch.testing.assert_close(got[known].double(), want[known], rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("name", INDEPENDENT)
def test_the_reference_agrees_with_an_independent_function(name):
    points = torch.tensor(POINTS, dtype=torch.float64)
    assert_agrees(reference(name, points), expected(INDEPENDENT[name], POINTS))


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("erfc_sqrt", math.erfc, math.sqrt),
        ("rad2deg_sqrt", math.degrees, math.sqrt),
    ],
)
def test_the_tasks_of_two_results_agree_with_the_standard_library(name, first, second):
    got = reference(name, torch.tensor(POINTS, dtype=torch.float64))
    assert_agrees(got[0], expected(first, POINTS))
    assert_agrees(got[1], expected(second, POINTS))


def test_the_complement_of_erf_keeps_its_digits_in_the_tail():
    (got, _) = reference("erfc_sqrt", torch.tensor([26.0], dtype=torch.float64))
    assert float(got) == pytest.approx(float(mpmath.erfc(26)), rel=1e-13)


def test_logit_clamps_to_eps_from_both_ends():
    x = torch.tensor([0.0, 0.1, 0.5, 1.0], dtype=torch.float64)
    low = math.log(0.125 / 0.875)
    want = torch.tensor([low, low, 0.0, -low], dtype=torch.float64)
    torch.testing.assert_close(reference("logit", x, eps=0.125), want)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("reciprocal", [math.inf, -math.inf, 0.0, -0.0, math.nan]),
        ("rsqrt", [math.inf, -math.inf, 0.0, math.nan, math.nan]),
        ("cos", [1.0, 1.0, math.nan, math.nan, math.nan]),
        ("sqrt_tanh", [0.0, -0.0, 1.0, math.nan, math.nan]),
        ("exp_sqrt", [1.0, 1.0, math.inf, 0.0, math.nan]),
    ],
)
def test_special_values_are_as_described(name, values):
    got = reference(name, torch.tensor(SPECIAL, dtype=torch.float64))
    assert got.tolist() == pytest.approx(values, nan_ok=True)


def test_exp_sqrt_admits_the_overflow_of_steps_in_half_precision():
    (formula,) = TASKS["exp_sqrt"].admissible
    assert formula(torch.tensor([20.0])).isinf().all()
    # A number that float16 lacks is no half-precision input.
    assert formula(torch.tensor([20.001])).isfinite().all()


def claims(name, x, out):
    wide = TASKS[name].reference(x.double())
    evidence = Evidence(
        inputs={"input": x.double()},
        scalars={},
        outputs=out if isinstance(out, tuple) else (out,),
        reference=wide if isinstance(wide, tuple) else (wide,),
        dtype="float32",
        eps=2.0**-23,
    )
    return [claim.holds for claim in TASKS[name].claims(evidence)]


@pytest.mark.parametrize("name", ["floor", "trunc"])
def test_whole_numbers_must_be_exact(name):
    x = torch.tensor([1.0, -1.5, 2.999, -0.0, math.inf, math.nan])
    right = TASKS[name].reference(x)
    assert claims(name, x, right) == [True]
    wrong = right.clone()
    wrong[2] = 3.0
    assert claims(name, x, wrong) == [False]


def test_floor_may_flush_a_negative_subnormal():
    x = torch.tensor([-1e-40])
    assert claims("floor", x, torch.tensor([-1.0])) == [True]
    assert claims("floor", x, torch.tensor([-0.0])) == [True]
    assert claims("floor", x, torch.tensor([1.0])) == [False]


def test_log1p_must_keep_the_digits_of_small_elements_beside_large_ones():
    x = torch.tensor([1e-6, 5.0, -1.0, -2.0, math.nan, 0.0])
    assert claims("log1p", x, torch.log1p(x)) == [True, True]
    assert claims("log1p", x, torch.log(1 + x)) == [True, False]
    assert claims("log1p", x, torch.log1p(x).nan_to_num(nan=0.0)) == [False, True]


def test_erfc_may_be_one_minus_erf_and_no_less_accurate():
    x = torch.tensor([-3.0, 0.5, 4.0, 8.5, 20.0, math.inf, math.nan])
    assert claims("erfc_sqrt", x, (torch.erfc(x), x.sqrt())) == [True, True]
    assert claims("erfc_sqrt", x, (1 - torch.erf(x), x.sqrt())) == [True, True]
    assert claims("erfc_sqrt", x, (1 - torch.erf(x) + 5e-7, x.sqrt())) == [True, True]
    assert claims("erfc_sqrt", x, (1 - torch.erf(x) + 5e-6, x.sqrt())) == [True, False]
    assert claims("erfc_sqrt", x, (1 - torch.tanh(x * 1.128), x.sqrt())) == [True, False]
