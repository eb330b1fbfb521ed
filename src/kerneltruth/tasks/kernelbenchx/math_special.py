"""Special functions, element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from kerneltruth.tasks.kernelbenchx.math_pointwise import pointwise
from kerneltruth.tasks.spec import Promises, Task

# Ai(0) and -Ai'(0), the coefficients of its two power series.
_AIRY_AT_0 = 0.355028053887817239
_AIRY_SLOPE = 0.258819403792806798
_LANCZOS = (
    *(0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313),
    *(-176.61502916214059, 12.507343278686905, -0.13857109526572012),
    *(9.9843695780195716e-6, 1.5056327351493116e-7),
)
# Coefficients for J1: above and below the line up to 8, of cosine and sine from there on.
_NEAR_ABOVE = (
    *(72362614232.0, -7895059235.0, 242396853.1),
    *(-2972611.439, 15704.4826, -30.16036606),
)
_NEAR_BELOW = (144725228442.0, 2300535178.0, 18583304.74, 99447.43394, 376.9991397, 1.0)
_FAR_COSINE = (1.0, 0.183105e-2, -0.3516396496e-4, 0.2457520174e-5, -0.240337019e-6)
_FAR_SINE = (0.04687499995, -0.2002690873e-3, 0.8449199096e-5, -0.88228987e-6, 0.105787412e-6)


def _airy_ai(input: Tensor) -> Tensor:
    """Ai in float64 arithmetic; PyTorch's own is off by up to 3e-6 between -6 and -2."""
    x = input.to(torch.float64)
    near = (x > -6.0) & (x < -2.0)
    series = _airy_series(torch.where(near, x, 0.0))
    return torch.where(near, series, torch.special.airy_ai(x)).to(input.dtype)


def _airy_series(x: Tensor) -> Tensor:
    cube = x * x * x
    even, odd = torch.ones_like(x), x.clone()
    even_term, odd_term = even.clone(), odd.clone()
    for k in range(3, 100, 3):
        even_term = even_term * cube / (k * (k - 1))
        odd_term = odd_term * cube / (k * (k + 1))
        even, odd = even + even_term, odd + odd_term
    return _AIRY_AT_0 * even - _AIRY_SLOPE * odd


def _bessel_j1(input: Tensor) -> Tensor:
    """J1 in float64 arithmetic; PyTorch's own is off by up to 5e-7 between 5 and 15."""
    x = input.to(torch.float64)
    near = x.abs() < 25.0
    integral = _bessel_integral(torch.where(near, x, 0.0))
    return torch.where(near, integral, torch.special.bessel_j1(x)).to(input.dtype)


def _bessel_integral(x: Tensor, points: int = 16) -> Tensor:
    """The mean of sin(x sin t) sin t over the circle, which the midpoint rule gives exactly."""
    t = (torch.arange(points, dtype=x.dtype, device=x.device) + 0.5) * (math.pi / 2 / points)
    sine = t.sin()
    return (torch.sin(x.unsqueeze(-1) * sine) * sine).mean(-1)


def _bessel_by_quotients(input: Tensor) -> Tensor:
    """J1 by quotients of polynomials (Hart, Computer Approximations), as kernels evaluate it.

    In float32 their large terms cost it up to 3e-6 close to 8. Their own error of 1e-8 is too much
    for float64, where nobody would use them.
    """
    if input.dtype == torch.float64:
        return _bessel_j1(input)
    x, size = input, input.abs()
    square = x * x
    above = x * _polynomial(square, _NEAR_ABOVE)
    near = above / _polynomial(square, _NEAR_BELOW)
    inverse = 8.0 / size
    angle = size - 0.75 * math.pi
    phase = _polynomial(inverse * inverse, _FAR_COSINE), _polynomial(inverse * inverse, _FAR_SINE)
    wave = torch.cos(angle) * phase[0] - inverse * torch.sin(angle) * phase[1]
    far = torch.sqrt(2 / math.pi / size) * wave
    return torch.where(size < 8.0, near, torch.where(x < 0, -far, far))


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """By Horner's rule, the constant coefficient first."""
    result = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def _gammaln_by_lanczos(input: Tensor) -> Tensor:
    """Lanczos' sum (g = 7, nine terms), and the reflection below 0.5.

    Its terms cancel at 1 and 2, where it is off by some ulps of 1 and not of the result.
    """
    x = torch.where(input < 0.5, 1 - input, input)
    total = torch.full_like(x, _LANCZOS[0])
    for k, coefficient in enumerate(_LANCZOS[1:]):
        total = total + coefficient / (x + k)
    shifted = x + 6.5
    found = 0.5 * math.log(2 * math.pi) + (x - 0.5) * torch.log(shifted) - shifted
    found = found + torch.log(total)
    sine = torch.sin(math.pi * (input - input.floor()))
    found = torch.where(input < 0.5, math.log(math.pi) - torch.log(sine) - found, found)
    return torch.where(input.isinf(), math.inf, found)


def _chebyshev(input: Tensor, n: int) -> Tensor:
    polynomial: Tensor = torch.special.chebyshev_polynomial_t(input, n)
    return polynomial


def _chebyshev_by_recurrence(input: Tensor, n: int) -> Tensor:
    one, other = torch.ones_like(input), input
    for _ in range(n):
        one, other = other, 2 * input * other - one
    return one


TASKS: tuple[Task, ...] = (
    pointwise(
        "airy_ai(input@)",
        _airy_ai,
        "The Airy function Ai of each element, the solution of y'' = x y that vanishes as x "
        "grows, in the input's dtype: it oscillates below 0 and falls towards 0 above. NaN for "
        "NaN. Elements lie in [-30, 30]. PyTorch's operator is off by up to 3e-6 between -6 and "
        "-2; that much is accepted there.",
        admissible=(lambda input: torch.special.airy_ai(input),),
        values=(-30.0, 30.0),
        flops=60,
        promises=Promises(out=True),
    ),
    pointwise(
        "bessel_j1(input@)",
        _bessel_j1,
        "The Bessel function of the first kind of order 1, J1, of each element, in the input's "
        "dtype; it is odd: J1(-x) = -J1(x). NaN for NaN. Elements lie in [-1000, 1000]. PyTorch's "
        "operator is off by up to 5e-7 between 5 and 15; that much is accepted there.",
        admissible=(lambda input: torch.special.bessel_j1(input), _bessel_by_quotients),
        values=(-1000.0, 1000.0),
        flops=60,
        promises=Promises(out=True),
    ),
    pointwise(
        "chebyshev_polynomial_t(input@, n=3)",
        _chebyshev,
        "The Chebyshev polynomial of the first kind of degree n of each element, in the input's "
        "dtype: T0 = 1, T1 = x, T(k+1) = 2 x T(k) - T(k-1), for elements outside of [-1, 1] too "
        "(cos(n acos x) is right inside only). n is a whole number of 0 or more; T0 of NaN is 1, "
        "else NaN stays NaN.",
        attributes={"n": (0, 1, 2, 5, 8, 12)},
        admissible=(_chebyshev_by_recurrence,),
        values=(-1.5, 1.5),
        flops=20,
        promises=Promises(out=True),
    ),
    pointwise(
        "digamma(input_tensor@)",
        lambda input_tensor: torch.digamma(input_tensor),
        "The digamma function of each element, the derivative of log(gamma(x)), in the input's "
        "dtype: minus infinity at 0.0, infinity at -0.0, NaN at negative whole numbers and for "
        "NaN, infinity at infinity. Negative elements are -8 at the least.",
        values=(-8.0, math.inf),
        flops=60,
        promises=Promises(out=True),
    ),
    pointwise(
        "gammaln(input@)",
        lambda input: torch.lgamma(input),
        "The logarithm of the magnitude of the gamma function of each element, in the input's "
        "dtype: infinity at 0, at negative whole numbers and at both infinities, NaN for NaN. "
        "Negative elements that are no whole numbers are defined too.",
        admissible=(_gammaln_by_lanczos,),
        flops=60,
        promises=Promises(out=True),
    ),
    pointwise(
        "i0(input_tensor@)",
        lambda input_tensor: torch.special.i0(input_tensor),
        "The modified Bessel function of the first kind of order 0 of each element, in the "
        "input's dtype; it is even and grows like exp(abs(x)) / sqrt(2 pi abs(x)). Infinity where "
        "that overflows, NaN for NaN.",
        flops=40,
        promises=Promises(out=True),
    ),
    pointwise(
        "polygamma(n=1, input@)",
        lambda n, input: torch.special.polygamma(n, input),
        "The n-th derivative of the digamma function of each element, in the input's dtype: n is "
        "a whole number of 0 or more, 0 gives the digamma function itself. For n >= 1 it is "
        "(-1)**(n + 1) n! times the sum of 1 / (x + k)**(n + 1) over k = 0, 1, 2, ... Elements "
        "lie in [0.0625, 1000]; NaN for NaN.",
        attributes={"n": (0, 2, 3, 4)},
        values=(0.0625, 1000.0),
        flops=100,
        promises=Promises(out=True),
    ),
)
