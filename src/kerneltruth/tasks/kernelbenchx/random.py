"""Numbers made from nothing: uniform random ones, and a logarithmic scale.

`rand` has no right answer per element. Its claims are statements about n independent
draws, each of which such draws break with a probability below 1e-9: Kolmogorov and Smirnov's
distance and the moments by inequalities that hold for every n (of Dvoretzky, Kiefer and Wolfowitz,
and of Hoeffding), the number of equal elements by counting on a grid of 2**-23.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from kerneltruth.tasks.claims import Claim, Evidence
from kerneltruth.tasks.gpu.errors import hashed
from kerneltruth.tasks.promises import NOT_TRIED_OF_MAKERS
from kerneltruth.tasks.spec import Dim, Output, Promises, Task, Variants, task

_LEVEL = 1e-9
_GRID = 2.0**23


def _rand(size: tuple[int, ...]) -> Tensor:
    """One sample, which only gives the shape; a generator would be of one device."""
    return (hashed(math.prod(size)) >> 8).double().mul(2.0**-24).reshape(size)


def _hoeffding(n: int, span: float) -> float:
    """How far the mean of n independent draws within `span` is from its expectation, at most."""
    return span * math.sqrt(math.log(2 / _LEVEL) / (2 * n))


def _most_equal(n: int) -> int:
    """How many of n draws from the grid are equal, at most."""
    for k in range(2, n + 1):
        # Expected number of sets of k equal draws.
        if math.comb(n, k) / _GRID ** (k - 1) < _LEVEL:
            return k - 1
    return n


def _uniform(e: Evidence) -> Iterator[Claim]:
    u = e.outputs[0].to(torch.float64).reshape(-1)
    n = u.numel()
    if n == 0:
        return
    outside = ~((u >= 0) & (u < 1))
    yield Claim(
        "elements outside of [0, 1)",
        float(outside.sum()),
        0.0,
        where=outside.reshape(e.outputs[0].shape),
    )
    if bool(outside.any()):
        return
    ordered = u.sort().values
    rank = torch.arange(n, dtype=torch.float64)
    distance = torch.maximum(((rank + 1) / n - ordered).amax(), (ordered - rank / n).amax())
    yield Claim("Kolmogorov-Smirnov distance", float(distance), _hoeffding(n, 1.0) + 1 / _GRID)
    equal = int(torch.unique_consecutive(ordered, return_counts=True)[1].max())
    yield Claim("equal elements", float(equal), float(_most_equal(n)))
    off = u - 0.5
    yield Claim("mean - 1/2", abs(float(off.mean())), _hoeffding(n, 1.0))
    second = float(off.square().mean()) - 1 / 12
    yield Claim("variance - 1/12", abs(second), _hoeffding(n, 0.25))
    for lag in (1, 2):
        if n > 4 * lag:
            # Blocks of 2 * lag elements hold lag pairs that share none.
            blocks = off[: n // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
            pairs = (blocks[:, 0] * blocks[:, 1]).reshape(-1)
            limit = _hoeffding(pairs.numel(), 0.5)
            yield Claim(f"covariance at distance {lag}", abs(float(pairs.mean())), limit)


def _logspace(start: float, end: float, steps: int, base: float) -> Tensor:
    return torch.logspace(start, end, steps, base, dtype=torch.float64)


def _logspace_by(power: Any) -> Any:
    """Exponents and powers in the result's dtype, as kernels compute them."""

    def powers(start: float, end: float, steps: int, base: float, dtype: str | None) -> Tensor:
        exponents = torch.linspace(start, end, steps, dtype=_computed_in(dtype))
        return torch.as_tensor(power(exponents, base))

    return powers


def _computed_in(dtype: str | None) -> torch.dtype:
    return torch.float32 if dtype is None else torch.float64


def _exp2(exponent: Tensor, base: float) -> Tensor:
    size = torch.exp2(exponent * torch.tensor(math.log2(abs(base)), dtype=exponent.dtype))
    return size if base > 0 else torch.pow(base, exponent).sign() * size


def _stepped(start: float, end: float, steps: int, base: float, dtype: str | None) -> Tensor:
    """Exponents from the start on all the way, whose rounding grows towards the end."""
    step = torch.tensor((end - start) / max(steps - 1, 1), dtype=_computed_in(dtype))
    return torch.pow(base, start + step * torch.arange(steps, dtype=step.dtype))


TASKS: tuple[Task, ...] = (
    task(
        "logspace(start=0.0, end=2.0, steps:=N, base=10.0, dtype=None)",
        category="Random",
        dims={"N": Dim(symbol="N", role="channel")},
        attributes={
            "start": (-3.0, 1.5),
            "end": (3.0, -1.0),
            "base": (2.0, 0.5, 2.718281828, -2.0),
            "dtype": ("torch.float64",),
        },
        dtypes=("float32",),
        reference=_logspace,
        admissible=(
            _logspace_by(lambda exponent, base: torch.pow(base, exponent)),
            _logspace_by(_exp2),
            _stepped,
        ),
        description="""`steps` values from base**start to base**end, both included, whose exponents
            are evenly spaced: element i is base ** (start + i * (end - start) / (steps - 1)), in
            float32, or in dtype if that is given. A negative base has a power where the exponent is
            whole, and NaN elsewhere. end may lie below start. steps may be 1, which gives
            base**start alone, or 0.""",
        flops="4*N",
        benchmark={"N": 256},
        perf=({"N": 2**20}, {"N": 2**24}, {"N": 2**27}),
        promises=Promises(
            out=True,
            not_tried={
                "start and end as tensors": "they are numbers in every case",
                **NOT_TRIED_OF_MAKERS,
            },
        ),
    ),
    task(
        "rand(size:=shape, dtype=None)",
        category="Random",
        dims={"M": Dim(symbol="M", role="batch"), "N": Dim(symbol="N", role="channel")},
        where={"shape": Variants("_rank", {2: "M, N", 1: "N", 3: "2, M, N", 4: "2, M, 1, N"})},
        attributes={"dtype": ("torch.float64",)},
        dtypes=("float32",),
        outputs=(Output(compare="claims", spared=("gain",)),),
        random=True,
        reference=_rand,
        claims=_uniform,
        description="""A tensor, of float32 or of `dtype` if that is given, of independent uniform
            random numbers in [0, 1): 0 may occur and 1 may not. The sizes of its dims are the
            positional arguments, as in rand(2, 3); one of them may be 0. Numbers lie on a grid of
            2**-23 or finer. Their distribution, mean, variance, the number of equal ones and the
            covariance of neighbours are tested, each at a level of 1e-9. Two calls give different
            numbers.""",
        flops="M*N",
        benchmark={"M": 16, "N": 256},
        perf=({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 16384, "N": 8192}),
        promises=Promises(
            out=True,
            not_tried={
                "generator": "the judge compares distributions, and seeds the default generator",
                "pin_memory": "results are compared by their values",
                **NOT_TRIED_OF_MAKERS,
            },
        ),
    ),
)
