"""Fusions that reduce: softmax, sums and distances."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from kerneltruth.tasks.formulas import computed_narrow
from kerneltruth.tasks.spec import Benchmark, Dim, Promises, Sizes, Task, Variants, nonempty, task

_WIDER = ("torch.float64",)
_LARGE = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
_SHAPE = Variants("_rank", {2: "M, N", 1: "N", 3: "M, 2, N"})


def _repeat_interleave_log_softmax(
    input: Tensor, repeats: int, dim: int | None, output_size: int | None
) -> Tensor:
    repeated = torch.repeat_interleave(input, repeats, dim=dim, output_size=output_size)
    return torch.log_softmax(repeated, 0 if dim is None else dim)


def _log_softmax_then_repeat(
    input: Tensor, repeats: int, dim: int | None, output_size: int | None
) -> Tensor:
    """Each element counts `repeats` times in its sum, and takes log(repeats) off."""
    del output_size
    flat = input.reshape(-1) if dim is None else input
    along = 0 if dim is None else dim
    less = torch.log_softmax(flat, along) - math.log(repeats)
    return torch.repeat_interleave(less, repeats, dim=along)


def _softmax_of_narrow_log(input: Tensor, dim: int, dtype: str | None) -> Tensor:
    """With the conversion that `dtype` asks for behind the logarithm, as in PyTorch."""
    log = torch.log(input) if dtype is None else computed_narrow(torch.log, input)
    return torch.softmax(log, dim)


def _sum_std(
    input: Tensor, dim: int | tuple[int, ...] | None, keepdim: bool, correction: int
) -> Tensor:
    sums = torch.sum(input, dim=dim, keepdim=keepdim).reshape(-1)
    if sums.numel() <= correction:
        return torch.zeros((), dtype=input.dtype)
    squares = (sums - sums.mean()).square().sum()
    return torch.sqrt(squares / (sums.numel() - correction))


def _sum_std_or_nan(
    input: Tensor, dim: int | tuple[int, ...] | None, keepdim: bool, correction: int
) -> Tensor:
    """As `torch.std` has it, which a prompt that does not speak of so few sums may mean."""
    result = _sum_std(input, dim, keepdim, correction)
    count = torch.sum(input, dim=dim, keepdim=keepdim).numel()
    return result if count > correction else torch.full_like(result, math.nan)


def _unit(x: Tensor, p: float, eps: float) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(x, p, dim=-1, keepdim=True)
    return x / norm.clamp_min(eps)


def _pairwise_distance_normalize(
    x1: Tensor, x2: Tensor, p_norm: float, eps_norm: float, eps_distance: float, keepdim: bool
) -> Tensor:
    # No half-precision norm is 1e-12 or above: the least norm is compared in float32.
    wide = torch.promote_types(x1.dtype, torch.float32)
    one, other = _unit(x1.to(wide), p_norm, eps_norm), _unit(x2.to(wide), p_norm, eps_norm)
    differences = one.unsqueeze(1) - other.unsqueeze(0)
    distance: Tensor = torch.linalg.vector_norm(differences, p_norm, dim=-1)
    distance = distance.clamp_min(eps_distance)
    return (distance.unsqueeze(-1) if keepdim else distance).to(x1.dtype)


def _repeated(shape: Sizes, repeats: int, dim: int | None, _sized: bool) -> int | None:
    """Return the size of the result along its dim, where the caller gives it."""
    if not _sized:
        return None
    return repeats * (math.prod(shape) if dim is None else shape[dim])


_task = partial(task, category="Fusion", perf=_LARGE)

TASKS: tuple[Task, ...] = (
    _task(
        "fused_repeat_interleave_log_softmax(input[*shape], repeats=2, dim=None, "
        "output_size:=repeated, dtype=None, _rank=2, _sized=False)",
        dims=nonempty(M="batch", N="reduced"),
        where={
            "shape": _SHAPE,
            "repeated": _repeated,
        },
        attributes={
            "repeats": (1, 3),
            "dim": (-1, 0, 1),
            "dtype": _WIDER,
            "_rank": (1, 3),
            "_sized": (True,),
        },
        constraints=("_rank > 1 or dim != 1",),
        reference=_repeat_interleave_log_softmax,
        admissible=(_log_softmax_then_repeat,),
        description="""First each element of `input` is repeated `repeats` times (an int), the
            copies side by side, along `dim`; then log_softmax along the same dim of the result.
            With dim None the input is flattened first, in row-major order, and the result is
            one-dimensional. `dim` may be negative. output_size is None or the size of the result
            along `dim`. If dtype is given, the input is converted to it first, and the result has
            it.""",
        flops="6*M*N*repeats",
        benchmark=Benchmark(dims={"M": 8, "N": 256}, distribution="normal"),
        promises=Promises(out=True, gradients=True),
    ),
    _task(
        "fused_softmax_log(input[*shape]: positive, dim=-1, dtype=None)",
        dims={"M": "batch", "N": Dim(symbol="N", role="reduced", low=1)},
        where={"shape": _SHAPE},
        attributes={"dim": (0, 1, -2), "dtype": _WIDER},
        constraints=("_rank > 1 or dim in (0, -1)",),
        reference=lambda input, dim: torch.softmax(torch.log(input), dim),
        admissible=(
            lambda input, dim: input / input.sum(dim, True),
            _softmax_of_narrow_log,
        ),
        description="""First the natural logarithm of each element (all are positive), then softmax
            along `dim`: x over the sum of x along `dim`, up to rounding. `dim` may be negative.
            The dtype is the input's, or, where it is given, `dtype`, to which the input is then
            converted first.""",
        flops="7*M*N",
        benchmark=Benchmark(dims={"M": 8, "N": 256}, distribution="uniform"),
    ),
    _task(
        "fused_sum_std(input[*shape], dim=1, keepdim=False, dtype=None, correction=1)",
        dims=nonempty(M="reduced", N="reduced"),
        where={"shape": Variants("_rank", {2: "M, N", 3: "M, 2, N"})},
        attributes={"dim": (0, -1, None, (0, -1)), "dtype": _WIDER, "correction": (0, 2)},
        # Half precision keeps the sums before their spread is taken.
        values=(-4.0, 4.0),
        reference=_sum_std,
        admissible=(_sum_std_or_nan,),
        description="""First the sums of `input` along `dim` (an int, a tuple of ints, or None for
            all dims); then the standard deviation over all of these sums together, a
            zero-dimensional tensor (keepdim is always False): the root of the sum of squared
            deviations from their mean over n - correction, n being the number of sums. Where
            n <= correction the result is 0, or NaN. If dtype is given, the input is converted to it
            first, and the result has it.""",
        flops="M*N",
        benchmark=Benchmark(dims={"M": 16, "N": 128}, distribution="normal"),
        promises=Promises(recipes=("far_from_zero",), out=True),
    ),
    _task(
        "fused_pairwise_distance_normalize(x1[M, D], x2[N, D], p_norm=2.0, eps_norm=1e-12, "
        "eps_distance=1e-6, keepdim=False)",
        dims={"M": "batch", "N": "channel", "D": Dim(symbol="D", role="reduced", low=1)},
        attributes={
            "p_norm": (1.0, 3.0),
            "eps_norm": (40.0,),
            "eps_distance": (1.5,),
            "keepdim": (True,),
        },
        reference=_pairwise_distance_normalize,
        description="""First each row of x1[M, D] and of x2[N, D] is divided by its p-norm, or by
            eps_norm where the norm is smaller (so a row of zeros stays 0, in half precision too);
            p is p_norm. Then the distances of all pairs of rows: out[i, j] is the p-norm of
            x1[i] - x2[j], and at least eps_distance. The shape is [M, N], with keepdim
            [M, N, 1].""",
        flops="M*N*D*3",
        benchmark=Benchmark(dims={"M": 16, "N": 16, "D": 64}, distribution="normal"),
        perf=(
            {"M": 256, "N": 256, "D": 128},
            {"M": 1024, "N": 1024, "D": 128},
            {"M": 4096, "N": 2048, "D": 128},
        ),
    ),
)
