"""Special functions by the formulas that kernels take from books: right ones pass in float32."""

import pytest

from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.engine.requests import CASES
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.registry import find

HEAD = """
import math
import torch

def _wide(x):
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x

def _given(result, like, out):
    result = result.to(like.dtype)
    return result if out is None else out.copy_(result)
"""
GAMMALN = """
C = (676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406,
     12.507343278686905, -0.13857109526572012, 9.984369578019572e-06, 1.5056327351493116e-07)

def gammaln(input, *, out=None):
    x = _wide(input)
    y = torch.where(x < 0.5, 1 - x, x)
    total = torch.full_like(y, 0.9999999999998099)
    for k, c in enumerate(C):
        total = total + c / (y + k)
    t = y + 6.5
    y = 0.9189385332046727 + (y - 0.5) * torch.log(t) - t + torch.log(total)
    reflected = math.log(math.pi) - torch.log(torch.sin(math.pi * (x - torch.floor(x)))) - y
    y = torch.where(x < 0.5, reflected, y)
    return _given(torch.where(torch.isinf(x), math.inf, y), input, out)
"""
DIGAMMA = """
def digamma(input_tensor, *, out=None):
    x = _wide(input_tensor)
    y = torch.where(x < 0.5, 1 - x, x)
    below = torch.zeros_like(y)
    for _ in range(8):
        low = y < 8
        below = torch.where(low, below + 1 / y, below)
        y = torch.where(low, y + 1, y)
    f = 1 / (y * y)
    y = torch.log(y) - 0.5 / y - f * (1/12 - f * (1/120 - f * (1/252 - f / 240))) - below
    y = torch.where(x < 0.5, y - math.pi / torch.tan(math.pi * x), y)
    y = torch.where((x < 0) & (x == torch.floor(x)), math.nan, y)
    return _given(y, input_tensor, out)
"""
I0 = """
SMALL = (3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
LARGE = (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537,
         -0.01647633, 0.00392377)

def _horner(x, coefficients):
    y = torch.zeros_like(x)
    for c in reversed(coefficients):
        y = y * x + c
    return y

def i0(input_tensor, *, out=None):
    x = _wide(input_tensor)
    a = x.abs()
    small = _horner((x / 3.75) ** 2, (1.0, *SMALL))
    large = torch.exp(a) / torch.sqrt(a) * _horner(3.75 / a, LARGE)
    return _given(torch.where(a < 3.75, small, large), input_tensor, out)
"""
BESSEL_J1 = """
def bessel_j1(input, *, out=None):
    x = _wide(input)
    a, y = x.abs(), x * x
    n = 242396853.1 + y * (-2972611.439 + y * (15704.48260 + y * -30.16036606))
    n = x * (72362614232.0 + y * (-7895059235.0 + y * n))
    d = 18583304.74 + y * (99447.43394 + y * (376.9991397 + y))
    d = 144725228442.0 + y * (2300535178.0 + y * d)
    z = 8.0 / a
    w, xx = z * z, a - 2.356194491
    p = 0.183105e-2 + w * (-0.3516396496e-4 + w * (0.2457520174e-5 + w * -0.240337019e-6))
    q = -0.2002690873e-3 + w * (0.8449199096e-5 + w * (-0.88228987e-6 + w * 0.105787412e-6))
    p, q = 1.0 + w * p, 0.04687499995 + w * q
    far = torch.sqrt(0.636619772 / a) * (torch.cos(xx) * p - z * torch.sin(xx) * q)
    return _given(torch.where(a < 8, n / d, torch.where(x < 0, -far, far)), input, out)
"""
RIGHT = {"gammaln": GAMMALN, "digamma": DIGAMMA, "i0": I0, "bessel_j1": BESSEL_J1}
# A digit of one constant is wrong.
WRONG = {
    "gammaln": ("676.5203681218851", "676.5303681218851"),
    "digamma": ("1/120", "1/12"),
    "i0": ("0.0360768", "0.0306768"),
    "bessel_j1": ("0.183105e-2", "0.138105e-2"),
}


def verdict(verdict_on, name, source, seed):
    task = find(f"kernelbenchx/{name}")
    candidate = read_candidate(HEAD + source, "one.py", task_names=(name,), task=name)
    plan = Plan(seed=seed, cases=CASES, promises=True, domain="core", compile=False)
    return verdict_on(task.key, candidate, plan)


@pytest.mark.sampled(by=lambda name, seed: [name])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", RIGHT)
def test_a_formula_of_a_book_is_right(verdict_on, name, seed):
    found = verdict(verdict_on, name, RIGHT[name], seed)
    assert isinstance(found, Passed), found


@pytest.mark.parametrize("name", RIGHT)
def test_one_wrong_digit_of_it_is_caught(verdict_on, name):
    digits, others = WRONG[name]
    assert RIGHT[name].count(digits) == 1
    found = verdict(verdict_on, name, RIGHT[name].replace(digits, others), 0)
    assert isinstance(found, Failed), found
