"""Normalizations, and norms of matrices and of what they do to vectors."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.gpu import signs
from kerneltruth.tasks.spec import (
    Benchmark,
    Dim,
    Output,
    Promises,
    Role,
    Sizes,
    Task,
    Variants,
    nonempty,
    task,
)

_INFINITE = float("inf")
_BATCH = nonempty(N="batch", C="channel", H="spatial", W="reduced")
_TRIPLE: dict[str, Role | Dim] = {"L": "batch", "M": "spatial", "N": "reduced"}
_ROWS: dict[str, Role | Dim] = {"L": "batch", "M": "batch", "N": "reduced"}
_SHAPE = Variants("_rank", {3: "L, M, N", 2: "M, N"})


def _batch_norm(
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """What PyTorch does: in half precision it rounds each step on a CPU, and so may a kernel."""
    if training:
        mean, var = running_mean.clone(), running_var.clone()
        return F.batch_norm(input, mean, var, weight, bias, True, momentum, eps), mean, var
    shape = [-1 if d == 1 else 1 for d in range(input.ndim)]
    scale = 1 / torch.sqrt(running_var + eps)
    y = (input - running_mean.reshape(shape)) * scale.reshape(shape)
    y = y if weight is None else y * weight.reshape(shape)
    return (y if bias is None else y + bias.reshape(shape),)


def _batch_norm_folded(
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """All that belongs to a channel put into one factor and one summand."""
    across = [d for d in range(input.ndim) if d != 1]
    shape = [-1 if d == 1 else 1 for d in range(input.ndim)]
    mean, var = running_mean, running_var
    if training:
        mean = input.mean(across)
        var = (input - mean.reshape(shape)).square().mean(across)
        count = input.numel() // input.shape[1]
        running_mean = (1 - momentum) * running_mean + momentum * mean
        running_var = (1 - momentum) * running_var + momentum * var * (count / (count - 1))
    factor = torch.rsqrt(var + eps)
    factor = factor if weight is None else factor * weight
    summand = -mean * factor if bias is None else bias - mean * factor
    y = input * factor.reshape(shape) + summand.reshape(shape)
    return (y, running_mean, running_var) if training else (y,)


def _norm(x: Tensor, p: float, dim: int, keepdim: bool) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(x, p, dim, keepdim)
    return norm


def _normalized_distance(
    x1: Tensor,
    x2: Tensor,
    p_distance: float,
    eps_distance: float,
    keepdim: bool,
    p_norm: float,
    dim_norm: int,
    eps_norm: float,
) -> Tensor:
    distance = _norm(x1 - x2, p_distance, -1, keepdim) + eps_distance
    return distance / _norm(distance, p_norm, dim_norm, True).clamp_min(eps_norm)


def _cosine(
    x1: Tensor, x2: Tensor, dim: int, eps_similarity: float, p_norm: float, eps_norm: float
) -> Tensor:
    one, other = (x / _norm(x, p_norm, dim, True).clamp_min(eps_norm) for x in (x1, x2))
    one = one / _norm(one, 2, dim, True).clamp_min(eps_similarity)
    other = other / _norm(other, 2, dim, True).clamp_min(eps_similarity)
    return (one * other).sum(dim)


def _cosine_in_float16(
    x1: Tensor, x2: Tensor, dim: int, eps_similarity: float, p_norm: float, eps_norm: float
) -> Tensor:
    """The same with eps in float16, where 1e-12 is 0 and a row of zeros gives NaN, as in PyTorch.

    Only where the inputs are float16 numbers: in the other dtypes eps must do its work.
    """
    if all(bool(((x.half() == x) | x.isnan()).all()) for x in (x1, x2)):
        eps_norm, eps_similarity = (
            float(torch.tensor(eps, dtype=torch.float16)) for eps in (eps_norm, eps_similarity)
        )
    return _cosine(x1, x2, dim, eps_similarity, p_norm, eps_norm)


def _spectral_radius(A: Tensor) -> Tensor:
    finite = A.isfinite().all(-1).all(-1)
    usable = torch.where(finite[..., None, None], A, 0)
    largest = torch.linalg.eigvals(usable).abs().amax(-1)
    return torch.where(finite, largest, torch.nan)


def _radius_of_neighbour(salt: int) -> Callable[[Tensor], Tensor]:
    """The spectral radius of a matrix as near as algorithms for eigenvalues come.

    These give the eigenvalues of A + E with a norm of E of some n * eps * norm(A), which LAPACK's
    tests ask for: not of A with each element off by its own rounding.
    """

    def formula(A: Tensor) -> Tensor:
        eps = torch.finfo(A.dtype).eps
        wide = A.to(torch.complex128 if A.is_complex() else torch.float64)
        norm = torch.linalg.matrix_norm(wide, keepdim=True)
        return _spectral_radius(wide + eps * norm * signs(wide.real, salt))

    return formula


def _matrix_vector_norm(A: Tensor, x: Tensor, alpha: float, beta: float, p: float) -> Tensor:
    y = alpha * (A @ x)
    norm: Tensor = torch.linalg.vector_norm(y + beta * y, p)
    return norm


def _normalized_cosine_similarity_x2(L: int, M: int, N: int, _rank: int, _x2: str) -> Sizes:
    if _x2 == "one":
        return (1, N)
    if _rank == 1:
        return (N,)
    if _rank == 2:
        return (M, N)
    return (L, M, N)


TASKS: tuple[Task, ...] = (
    task(
        "batch_norm(input[*shape], running_mean[C], running_var[C]: positive, weight[C]?, "
        "bias[C]?, training=False, momentum=0.1, eps=1e-5)",
        category="Normalization",
        dims=_BATCH,
        where={
            "shape": Variants("_rank", {4: "N, C, H, W", 3: "N, C, W", 2: "N, C"}),
            "pixels": lambda shape: prod(shape[2:]),
        },
        attributes={"training": (True,), "momentum": (0.5, 1.0), "eps": (1e-2,)},
        constraints=("not training or N * pixels > 1",),
        outputs=(
            Output(),
            Output(name="running_mean", when="training"),
            Output(name="running_var", when="training"),
        ),
        mutates={"running_mean": "training", "running_var": "training"},
        reference=_batch_norm,
        admissible=(_batch_norm_folded,),
        description="""(input - mean) / sqrt(var + eps) for each channel, which is dim 1 of an input
            [N, C], [N, C, W] or [N, C, H, W]; times weight[C] and plus bias[C], each where it is
            not None. With `training=False` mean and var are running_mean[C] and running_var[C],
            which stay as they are. With `training=True` they are the mean and the biased variance
            of the channel over all other dims, and the running ones are updated in place:
            running = (1 - momentum) * running + momentum * new, where the new variance is the
            unbiased one (divided by n - 1). The normalized tensor is returned, in the input's
            dtype.""",
        flops="8*N*C*pixels",
        benchmark=Benchmark(dims={"N": 4, "C": 8, "H": 8, "W": 8}, distribution="normal"),
        perf=(
            {"N": 16, "C": 64, "H": 32, "W": 32},
            {"N": 32, "C": 128, "H": 56, "W": 56},
            {"N": 64, "C": 256, "H": 56, "W": 56},
        ),
        promises=Promises(recipes=("far_from_zero",)),
    ),
    task(
        "normalize_pairwise_distance(x1[*shape], x2[*shape], p_distance=2.0, eps_distance=1e-6, "
        "keepdim=False, p_norm=2, dim_norm=1, eps_norm=1e-12)",
        category="Normalization",
        dims=_TRIPLE,
        where={"shape": _SHAPE, "batch": lambda L, _rank: L if _rank == 3 else 1},
        attributes={
            "p_distance": (1.0, 3.0, _INFINITE),
            "eps_distance": (0.5,),
            "keepdim": (True,),
            "p_norm": (1, _INFINITE),
            "dim_norm": (0, -1),
            "eps_norm": (1000.0,),
        },
        constraints=("-(_rank - 1 + keepdim) <= dim_norm < _rank - 1 + keepdim",),
        reference=_normalized_distance,
        description="""First d = ||x1 - x2||_p + eps_distance along the last dim, with
            p = p_distance: the p-th root of the sum of p-th powers of magnitudes, for infinity the
            largest magnitude; `keepdim=True` keeps that dim with size 1. Then d over its own norm
            along dim_norm (a dim of d, which may be negative) with p = p_norm, or over eps_norm
            where that norm is smaller: d / max(||d||, eps_norm). x1 and x2 have one shape, of two
            or three dims; the result has the shape of d.""",
        flops="(4*N + 4)*M*batch",
        benchmark=Benchmark(dims={"L": 4, "M": 16, "N": 64}, distribution="normal"),
        perf=(
            {"L": 32, "M": 128, "N": 64},
            {"L": 64, "M": 1024, "N": 256},
            {"L": 64, "M": 4096, "N": 512},
        ),
    ),
    task(
        "normalized_cosine_similarity(x1[*shape], x2[*x2_shape], dim=1, eps_similarity=1e-8, "
        "p_norm=2.0, eps_norm=1e-12, _rank=2, _x2='same')",
        category="Normalization",
        dims=_ROWS,
        where={
            "shape": _SHAPE,
            "x2_shape": _normalized_cosine_similarity_x2,
            "rows": lambda shape: prod(shape[:-1]),
        },
        attributes={
            "dim": (-1, 0),
            "eps_similarity": (0.5,),
            "p_norm": (1.0, 3.0, _INFINITE),
            "eps_norm": (100.0,),
            "_rank": (3,),
            "_x2": ("one",),
        },
        constraints=("-_rank <= dim < _rank", "_x2 == 'same' or (_rank == 2 and dim % 2)"),
        reference=_cosine,
        admissible=(_cosine_in_float16,),
        description="""x1 and x2, of one shape or x2 a single row, are each divided along `dim` by
            their p-norm with p = p_norm (or by eps_norm where the norm is smaller), giving u and v.
            The result, which lacks `dim`, is the cosine of the angle between u and v: the sum along
            `dim` of (u / max(||u||, eps_similarity)) * (v / max(||v||, eps_similarity)), with
            Euclidean norms. So rows of zeros give 0 (in float16, which has no number as small as
            the default eps, NaN is accepted too). `dim` may be negative; the inputs have two or
            three dims. p_norm may be infinity, which means the largest magnitude.""",
        flops="12*N*rows",
        benchmark=Benchmark(dims={"L": 1, "M": 32, "N": 128}, distribution="normal"),
        perf=(
            {"L": 1, "M": 256, "N": 128},
            {"L": 1, "M": 8192, "N": 1024},
            {"L": 1, "M": 32768, "N": 4096},
        ),
    ),
    task(
        "spectral_norm_eig(A[*batch, N, N])",
        category="Normalization",
        dims={
            "B": Dim(symbol="B", role="batch", low=1),
            "N": Dim(symbol="N", role="spatial", low=1, high=256),
        },
        where={
            "batch": Variants("_batched", {False: "", True: "B"}),
            "matrices": lambda batch: prod(batch),
        },
        dtypes=("float32",),
        extended_dtypes=("float64", "complex64", "complex128"),
        promises=Promises(dtypes=("float32", "float64", "complex64", "complex128"), out=True),
        outputs=(Output(dtype="real", may_be_complex=True),),
        reference=_spectral_radius,
        admissible=tuple(_radius_of_neighbour(salt) for salt in range(4)),
        values=(-10.0, 10.0),
        description="""The largest magnitude among the eigenvalues of a general real square matrix
            [N, N], a tensor of no dims, or of each matrix of a batch [B, N, N], a tensor [B]. The
            eigenvalues may be complex. (For a symmetric matrix, and any other normal one, this is
            its spectral norm; the largest singular value is another number in general.) NaN for a
            matrix with an infinite or NaN entry, or an exception.""",
        flops="10*N*N*N*matrices",
        benchmark=Benchmark(dims={"B": 1, "N": 16}, distribution="normal"),
        perf=({"B": 1, "N": 32}, {"B": 1, "N": 128}, {"B": 1, "N": 256}),
    ),
    task(
        "symmetric_matrix_vector_norm(A[N, N]: symmetric, x[N], alpha=1.0, beta=0.5, p=2.0)",
        category="Normalization",
        dims={"N": "contracted"},
        attributes={"alpha": (2.0, -0.5), "beta": (1.0, 0.0, -0.25), "p": (1.0, 3.0, _INFINITE)},
        reference=_matrix_vector_norm,
        description="""The p-norm of (1 + beta) * y with y = alpha * (A @ x), for a symmetric matrix
            A[N, N], given in full, and a vector x[N]: the p-th root of the sum of p-th powers of
            magnitudes, for infinity the largest magnitude. A tensor of no dims, in the inputs'
            dtype; 0 for N = 0.""",
        flops="2*N*N + 5*N",
        benchmark=Benchmark(dims={"N": 64}, distribution="normal"),
        perf=({"N": 512}, {"N": 4096}, {"N": 16384}),
    ),
)
