"""Results that the claims of `rand` let through; a logarithmic scale against NumPy and mpmath."""

import mpmath
import numpy as np
import pytest
import torch

from kerneltruth.tasks.claims import Evidence
from kerneltruth.tasks.kernelbenchx.random import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}


def broken(values):
    """The claims of `rand` that the values break."""
    out = torch.as_tensor(values, dtype=torch.float32)
    evidence = Evidence(
        inputs={},
        scalars={"size": tuple(out.shape)},
        outputs=(out,),
        reference=(torch.zeros(out.shape, dtype=torch.float64),),
        dtype="float32",
        eps=2.0**-23,
    )
    return [claim.name for claim in TASKS["rand"].claims(evidence) if not claim.holds]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 100, 4096, 200_000])
@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_generators_in_wide_use_break_no_claim(bits, n):
    assert broken(np.random.Generator(bits(1)).random(n, dtype=np.float32)) == []


@pytest.mark.parametrize(
    ("spoil", "claim"),
    [
        (lambda u: u * 2 - 1, "elements outside of [0, 1)"),
        (lambda u: u * 0.5, "Kolmogorov-Smirnov distance"),
        (lambda u: u * u, "Kolmogorov-Smirnov distance"),
        (lambda u: u * 0, "equal elements"),
        (lambda u: torch.floor(u * 256) / 256, "equal elements"),
        (lambda u: u.sort().values, "covariance at distance 1"),
        (lambda u: u[:2048].repeat_interleave(2) * 0.999 + 0.0005, "covariance at distance 1"),
        (lambda u: torch.where(u > 0.5, 0.9 + u / 10, u / 10), "variance - 1/12"),
    ],
)
def test_numbers_that_are_not_uniform_or_not_independent_break_a_claim(spoil, claim):
    u = torch.rand(4096, generator=torch.Generator().manual_seed(0))
    assert claim in broken(spoil(u))


def test_one_itself_is_outside():
    u = torch.rand(100, generator=torch.Generator().manual_seed(0))
    u[7] = 1.0
    assert broken(u) == ["elements outside of [0, 1)"]


def test_nan_is_outside():
    assert broken([0.5, float("nan")]) == ["elements outside of [0, 1)"]


@pytest.mark.parametrize(
    ("start", "end", "steps", "base"),
    [(0.0, 2.0, 5, 10.0), (-3.0, 3.0, 8, 2.0), (1.5, -1.0, 4, 0.5), (1.0, 2.0, 1, 10.0)],
)
def test_a_logarithmic_scale_is_that_of_numpy_and_mpmath(start, end, steps, base):
    got = TASKS["logspace"].reference(start=start, end=end, steps=steps, base=base)
    want = np.logspace(start, end, steps, base=base)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13)
    step = mpmath.mpf(end - start) / max(steps - 1, 1)
    exact = [float(mpmath.power(base, start + i * step)) for i in range(steps)]
    np.testing.assert_allclose(got.numpy(), exact, rtol=1e-13)
