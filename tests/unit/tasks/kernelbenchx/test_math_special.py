"""Special functions against mpmath, at the precision that a float64 reference needs."""

import math

import mpmath
import numpy as np
import pytest
import torch

from kerneltruth.tasks.kernelbenchx.math_special import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}

# Beyond any rounding of float32 outputs by four orders of magnitude.
PRECISION = 1e-11


def assert_agrees(got, function, points, precision=PRECISION):
    want = torch.tensor([float(function(x)) for x in points], dtype=torch.float64)
    torch.testing.assert_close(got, want, rtol=precision, atol=precision)


@pytest.mark.parametrize(
    ("name", "function", "low", "high"),
    [
        ("airy_ai", mpmath.airyai, -30, 30),
        ("airy_ai", mpmath.airyai, -6.2, -1.8),
        ("bessel_j1", lambda x: mpmath.besselj(1, x), -60, 60),
        ("bessel_j1", lambda x: mpmath.besselj(1, x), 4, 16),
        ("bessel_j1", lambda x: mpmath.besselj(1, x), 900, 1000),
        ("digamma", mpmath.digamma, -8, 40),
        ("gammaln", lambda x: mpmath.log(abs(mpmath.gamma(x))), -12, 60),
        ("i0", lambda x: mpmath.besseli(0, x), -30, 30),
    ],
)
def test_the_reference_agrees_with_mpmath(name, function, low, high):
    points = np.linspace(low + 0.0123, high, 83)
    got = TASKS[name].reference(torch.tensor(points))
    assert_agrees(got, function, points)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_polygamma_agrees_with_mpmath(n):
    points = np.concatenate([np.linspace(0.0625, 3, 25), np.linspace(4, 1000, 20)])
    got = TASKS["polygamma"].reference(n, torch.tensor(points))
    # PyTorch's trigamma stops at 5e-10, which no float32 result can show.
    assert_agrees(got, lambda x: mpmath.psi(n, x), points, precision=1e-9 if n == 1 else PRECISION)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 12])
def test_chebyshev_polynomials_agree_with_their_definition(n):
    points = np.linspace(-1.5, 1.5, 61)
    got = TASKS["chebyshev_polynomial_t"].reference(torch.tensor(points), n)
    assert_agrees(got, lambda x: np.polynomial.Chebyshev.basis(n)(x), points)


@pytest.mark.parametrize("task", DECLARED, ids=lambda t: t.name)
def test_admissible_formulas_are_near_the_reference(task):
    x = torch.linspace(-1.4, 1.4, 41, dtype=torch.float64)
    scalars = {a.name: a.default for a in task.attributes if not a.hidden}
    for formula in task.admissible:
        want = task.reference(x, **scalars)
        torch.testing.assert_close(formula(x, **scalars), want, rtol=1e-12, atol=1e-12)


def test_the_poles_of_gamma_are_as_described():
    x = torch.tensor([0.0, -0.0, -2.0, math.inf, math.nan])
    assert TASKS["digamma"].reference(x).tolist() == pytest.approx(
        [-math.inf, math.inf, math.nan, math.inf, math.nan], nan_ok=True
    )
    assert TASKS["gammaln"].reference(x).tolist() == pytest.approx(
        [math.inf, math.inf, math.inf, math.inf, math.nan], nan_ok=True
    )


def test_pytorchs_airy_and_bessel_functions_are_as_far_off_as_described():
    x = torch.linspace(-6, -2, 400, dtype=torch.float64)
    airy = (torch.special.airy_ai(x) - TASKS["airy_ai"].reference(x)).abs().amax()
    assert 1e-6 < airy <= 3e-6
    x = torch.linspace(5, 15, 400, dtype=torch.float64)
    bessel = (torch.special.bessel_j1(x) - TASKS["bessel_j1"].reference(x)).abs().amax()
    assert 1e-7 < bessel <= 5e-7
