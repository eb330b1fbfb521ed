"""Transforms along chosen dims, and a draw of binomial counts."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.claims import Claim, Evidence
from kerneltruth.tasks.gpu import signs
from kerneltruth.tasks.kernelbenchx.math_pointwise import PERF, PLAIN, SMALL
from kerneltruth.tasks.spec import (
    Output,
    Promises,
    Sizes,
    Task,
    Variants,
    nonempty,
    task,
)

_SHAPE = Variants("_rank", {2: "M, N", 1: "N", 3: "2, M, N"})
_GRID = nonempty(M="reduced", N="reduced")

# How likely a right kernel is to be flagged by one statistic of one case.
_LEVEL = 1e-9
_TRIALS = 33
_NEAR = 0.7
# The largest prime for which FFT libraries have an algorithm of its own.
_RADIX = 7


def _fftn(
    input: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None, norm: str | None
) -> Tensor:
    spectrum: Tensor = torch.fft.fftn(input, s=s, dim=dim, norm=norm)
    return spectrum


def _fftn_by_sums(
    input: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None, norm: str | None
) -> Tensor:
    """In float64, with the error of large prime factors p, over which a transform is a plain sum.

    Its factors exp(-2 pi i k / p), by repeated multiplication, are off by k / 2 ulps. Seen of cuFFT
    on an H100: 130 ulps of the spectrum's rms where the primes are 43 and 17, and none of that for
    powers of two or in float32. The float64 of a CPU is within 3 ulps of its largest element.
    """
    spectrum = _fftn(input, s, dim, norm)
    if input.dtype != torch.float64:
        return spectrum
    first = 0 if s is None else input.ndim - len(s)
    dims = tuple(range(first, input.ndim)) if dim is None else dim
    primes = [p for d in dims for p in _primes(spectrum.shape[d]) if p > _RADIX]
    parts = torch.view_as_real(spectrum)
    rms = torch.nan_to_num(parts, nan=0.0, posinf=0.0, neginf=0.0).square().mean().sqrt()
    level = torch.finfo(input.dtype).eps * sum(primes) / 4 * rms
    return torch.view_as_complex(parts + level * signs(parts, 0))


def _primes(n: int) -> list[int]:
    """The prime factors of a size."""
    found, p = [], 2
    while p * p <= n:
        if n % p:
            p += 1
        else:
            found.append(p)
            n //= p
    return [*found, n] if n > 1 else found


def _ifftshift(input: Tensor, dim: int | tuple[int, ...] | None) -> Tensor:
    one = (dim,) if isinstance(dim, int) else dim
    dims = tuple(range(input.ndim)) if one is None else one
    return torch.roll(input, [-(input.shape[d] // 2) for d in dims], dims)


def _binomial_mean(
    input: Tensor, other: Tensor, total_count: Tensor, probs: Tensor, logits: None
) -> Tensor:
    """What the counts are on average, with the shape and dtype that they have."""
    del input, other, logits
    return total_count.to(probs.dtype) * probs


def _trials_shape(M: int, N: int, _rank: int, _trials: str) -> Sizes:
    if _trials == "same":
        return (M, N) if _rank == 2 else (M * N,) if _rank == 1 else (M, 2, N)
    return (N,) if _trials == "row" else ()


def _is_binomial(evidence: Evidence) -> list[Claim]:
    """Support, certain outcomes, location and spread, each statistic at the level of `_LEVEL`."""
    (counts,) = evidence.outputs
    trials, chance = evidence.inputs["total_count"], evidence.inputs["probs"]
    assert trials is not None
    assert chance is not None
    trials = trials.expand_as(chance)
    known = ~chance.isnan()
    got = counts.to(torch.float64)[known]
    chance, trials = chance[known], trials.to(torch.float64)[known]
    outside = ~((got == got.round()) & (got >= 0) & (got <= trials))
    outside |= (chance == 0) & (got != 0)
    outside |= (chance == 1) & (got != trials)
    return [
        Claim("counts outside of what is possible", float(outside.sum()), 0.0),
        *_statistics(got, trials, chance),
    ]


def _statistics(got: Tensor, trials: Tensor, chance: Tensor) -> list[Claim]:
    """Hoeffding's bound: a count is a sum of independent trials, so a sum of counts is one too."""
    deviation = got - trials * chance
    claims = []
    for size in (16, max(got.numel(), 1)):
        off = _sums(deviation, size).abs()
        limit = (_sums(trials, size) * math.log(2 * max(off.numel(), 1) / _LEVEL) / 2).sqrt()
        excess = float((off - limit).amax()) if off.numel() else 0.0
        claims.append(Claim(f"excess of a sum of {size} deviations", excess, 0.0))
    reach = _NEAR * (trials * chance * (1 - chance)).sqrt()
    expected = _likely(trials, chance, reach).sum()
    near = (deviation.abs() < reach).sum()
    allowed = math.sqrt(got.numel() * math.log(2 / _LEVEL) / 2)
    claims.append(
        Claim("surplus of counts near their mean", float((near - expected).abs()), allowed)
    )
    return claims


def _likely(trials: Tensor, chance: Tensor, reach: Tensor) -> Tensor:
    """How likely a count is to lie less than `reach` from its mean."""
    count = torch.arange(_TRIALS, dtype=torch.float64)
    trials, chance, reach = (t.unsqueeze(-1) for t in (trials, chance, reach))
    failures = (trials - count).clamp_min(0)
    ways = (trials + 1).lgamma() - (count + 1).lgamma() - (failures + 1).lgamma()
    odds = torch.special.xlogy(count, chance) + torch.special.xlog1py(failures, -chance)
    counted = (count <= trials) & ((count - trials * chance).abs() < reach)
    return torch.where(counted, (ways + odds).exp(), 0.0).sum(-1)


def _sums(values: Tensor, size: int) -> Tensor:
    """Sums of each run of `size` elements."""
    runs = -(-values.numel() // size)
    return F.pad(values, (0, runs * size - values.numel())).reshape(runs, size).sum(1)


def _stages(M: int, N: int) -> int:
    return (M * N).bit_length()


def _as_many_dims(s: Sizes | None, dim: Sizes | None) -> bool:
    return s is None or dim is None or len(s) == len(dim)


_task = partial(task, category="Math", benchmark=SMALL, perf=PERF)

TASKS: tuple[Task, ...] = (
    _task(
        "bitwise_and_binomial(input[*shape]: int32, other[*shape]: int32, "
        "total_count[*trials]: index(33), probs[*shape]: probability, logits:=None, _rank=2, "
        "_trials='same')",
        dims=PLAIN,
        where={
            "shape": Variants("_rank", {2: "M, N", 1: "M * N", 3: "M, 2, N"}),
            "trials": _trials_shape,
        },
        attributes={"_rank": (1, 3), "_trials": ("row", "one")},
        constraints=("_trials != 'row' or _rank == 2",),
        dtypes=("float32",),
        outputs=(Output(name="counts", compare="claims"),),
        claims=_is_binomial,
        random=True,
        reference=_binomial_mean,
        description="""Takes the bitwise and of input and other, two int32 tensors, and draws from
            the binomial distribution. As in KernelBenchX's operator, the and decides nothing:
            each element of the result is an independent draw of how many of total_count trials
            (int64, 0 to 32) succeed, each with the chance probs (float32, in [0, 1]), so it is a
            whole number in [0, total_count] in float32; 0 for a chance of 0, total_count for a
            chance of 1, any value for a chance of NaN. logits, the chance as log-odds, may be
            given in place of probs; it is None here. All tensors have one shape, of any rank;
            only total_count may be one that broadcasts to it.
            Counts are judged by what is possible, by their sums and by how many are near their
            mean, at a level of 1e-9.""",
        flops=f"{_TRIALS}*M*N",
        promises=Promises(
            not_tried={"logits for probs": "one of probs and logits is given, and that is probs"}
        ),
    ),
    _task(
        "fftn(input[*shape], s=None, dim=None, norm=None)",
        dims=_GRID,
        where={"shape": _SHAPE, "stages": _stages, "as_many_dims": _as_many_dims},
        attributes={
            "s": ((8, 6), (5, 12)),
            "dim": ((-1,), (0,), (0, 1), (-2, -1)),
            "norm": ("ortho", "forward", "backward"),
        },
        constraints=(
            "_rank > 1 or (s is None and (dim is None or dim in ((0,), (-1,))))",
            "as_many_dims",
        ),
        outputs=(Output(dtype="complex"),),
        dtypes=("float32",),
        extended_dtypes=("float64",),
        reference=_fftn,
        admissible=(_fftn_by_sums,),
        description="""The discrete Fourier transform of a real tensor over the dims `dim`, as
            complex64 (complex128 for float64): the sum over n of x[n] exp(-2 pi i k n / size),
            along each of them. dim None means all dims, or the last len(s) ones if s is given. s
            gives the size of each transformed dim: the input is cut off at its end, or padded
            there with zeros. norm None or "backward" scales by 1, "forward" by 1 / (the number of
            transformed elements), "ortho" by the square root of that. Sizes are any number, not
            powers of two only; the whole spectrum is returned. NaN spreads over what it is
            transformed with.""",
        flops="5*M*N*stages",
        benchmark={"M": 16, "N": 64},
        perf=({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192}),
        promises=Promises(
            out=True,
            not_tried={"half precision": "PyTorch has it on a GPU and for powers of two only"},
        ),
    ),
    _task(
        "ifftshift(input[*shape], dim=None)",
        dims={"M": "batch", "N": "channel"},
        where={"shape": _SHAPE},
        attributes={"dim": (-1, 0, (0, 1), (-2,))},
        constraints=("_rank > 1 or dim is None or dim in (-1, 0)",),
        reference=_ifftshift,
        description="""Undoes fftshift: rolls each of the dims `dim` (a number or a tuple of them,
            negative ones counted from the end; None means all) by -(size // 2), so that
            out[i] = input[(i + size // 2) % size] along it. For odd sizes that is another roll
            than fftshift's. Values are copied unchanged, in the input's dtype.""",
        flops="M*N",
    ),
    _task(
        "softmax(input[*shape], dim=-1, dtype=None)",
        dims={"M": "batch", "N": "reduced"},
        where={"shape": _SHAPE},
        attributes={"dim": (0, 1, -2), "dtype": ("torch.float64",)},
        constraints=("_rank > 1 or dim in (-1, 0)",),
        reference=lambda input, dim: torch.softmax(input, dim),
        description="""exp(x) divided by the sum of exp over the dim `dim` (negative ones counted
            from the end), in the input's dtype, with the largest element of that sum subtracted
            first so that nothing overflows. A NaN or plus infinity makes all results that share
            its sum NaN; an element of minus infinity gives 0, and NaN if all are. If dtype is
            given, the input is converted to it first, and the result has it.""",
        flops="5*M*N",
    ),
)
