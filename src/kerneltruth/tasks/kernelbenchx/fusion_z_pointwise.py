"""Fusions that work element by element."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.spec import Benchmark, Dim, Promises, Role, Scalar, Task, Variants, task

_PLANE: dict[str, Role | Dim] = {"M": "batch", "N": "spatial"}
_PERF = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
_SMALL = {"M": 16, "N": 256}
_NORMAL = Benchmark(dims=_SMALL, distribution="normal")
_RANK: dict[str, tuple[Scalar, ...]] = {"_rank": (1, 3)}
_SHAPE = Variants("_rank", {2: "M, N", 1: "M * N", 3: "M, 1, N"})
_BROADCAST: tuple[Scalar, ...] = ("row", "column")


def _gelu_by_steps(x: Tensor, approximate: str) -> Tensor:
    if approximate == "tanh":
        return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476))


def _masked_select_add_gelu(
    input: Tensor, mask: Tensor, other: float, alpha: float, approximate: str
) -> Tensor:
    return F.gelu(torch.masked_select(input, mask) + alpha * other, approximate=approximate)


def _masked_select_add_gelu_by_steps(
    input: Tensor, mask: Tensor, other: float, alpha: float, approximate: str
) -> Tensor:
    return _gelu_by_steps(torch.masked_select(input, mask) + alpha * other, approximate)


def _mul_sub(input: Tensor, other_mul: Tensor, other_sub: Tensor, alpha: float) -> Tensor:
    return input * other_mul - alpha * other_sub


def _sub_gelu(input: Tensor, other: Tensor, alpha: float, approximate: str) -> Tensor:
    return F.gelu(input - alpha * other, approximate=approximate)


def _sub_gelu_by_steps(input: Tensor, other: Tensor, alpha: float, approximate: str) -> Tensor:
    return _gelu_by_steps(input - alpha * other, approximate)


_task = partial(task, category="Fusion", dims=_PLANE, benchmark=_NORMAL, perf=_PERF)

TASKS: tuple[Task, ...] = (
    _task(
        "fused_log_tanh(input[*shape]: positive, _rank=2)",
        where={"shape": _SHAPE},
        attributes=_RANK,
        reference=lambda input: torch.tanh(torch.log(input)),
        description="""tanh(log(x)) of each element: first the natural logarithm, then the
            hyperbolic tangent. All elements are positive, from the smallest that the dtype holds
            to infinity; the result lies in [-1, 1], NaN stays NaN. Shape and dtype are the
            input's, of any rank.""",
        flops="10*M*N",
        benchmark=Benchmark(dims=_SMALL, distribution="uniform"),
        promises=Promises(out=True),
    ),
    _task(
        "fused_masked_select_add_gelu(input[M, N], mask[*shape]: mask, other=1.0, alpha=1, "
        "approximate='none')",
        where={"shape": Variants("_mask", {"same": "M, N", "row": "N"})},
        attributes={"other": (0.125, -3.0), "alpha": (0.5, -2.0), "approximate": ("tanh",)},
        extended={"_mask": ("row",)},
        reference=_masked_select_add_gelu,
        admissible=(_masked_select_add_gelu_by_steps,),
        description="""Select the elements of `input` where the boolean `mask`, broadcast to the
            input's shape, is True, in row-major order, as a one-dimensional tensor whose length
            is their number (it may be 0); add alpha * other, `other` being a number; then GELU of
            the sum: x * Phi(x), or with approximate="tanh"
            0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). The dtype is the input's.""",
        flops="10*M*N",
        promises=Promises(
            out=True,
            gradients=True,
            not_tried={"other as a tensor": "it is a number in every case"},
        ),
    ),
    _task(
        "fused_mul_sub(input[M, N], other_mul[*other_mul_shape], other_sub[*other_sub_shape], "
        "alpha=1)",
        where={
            "other_mul_shape": Variants("_mul", {"same": "M, N", "row": "N", "column": "M, 1"}),
            "other_sub_shape": Variants("_sub", {"same": "M, N", "row": "N", "column": "M, 1"}),
        },
        attributes={"alpha": (0.5, -2.0, 0.0)},
        extended={"_mul": _BROADCAST, "_sub": _BROADCAST},
        reference=_mul_sub,
        admissible=(
            lambda input, other_mul, other_sub, alpha: torch.sub(
                input * other_mul, other_sub, alpha=alpha
            ),
        ),
        description="""input * other_mul - alpha * other_sub, element by element; other_mul and
            other_sub broadcast to the input's shape. alpha multiplies other_sub alone; 0 * inf is
            NaN also where alpha is 0.""",
        flops="3*M*N",
        promises=Promises(numbers=("other_mul", "other_sub"), out=True),
    ),
    _task(
        "fused_relu_sqrt(input[*shape], inplace=False, _rank=2)",
        where={"shape": _SHAPE},
        attributes={"inplace": (True,), **_RANK},
        # The prompt does not say where the result lies if both are given.
        constraints=("not inplace or _call != 'out'",),
        may_overwrite={"input": "inplace"},
        reference=lambda input, inplace: torch.sqrt(torch.relu(input)),
        description="""sqrt(max(x, 0)) of each element: first ReLU, then the square root, so that
            negative elements give 0 and NaN stays NaN. Shape and dtype are the input's. With
            `inplace` the input may be overwritten and returned.""",
        flops="2*M*N",
        extended_dtypes=("float64",),
        promises=Promises(out=True),
    ),
    _task(
        "fused_sub_gelu(input[M, N], other[*shape], alpha=1, approximate='none')",
        where={"shape": Variants("_other", {"same": "M, N", "row": "N", "column": "M, 1"})},
        attributes={"alpha": (0.5, -2.0), "approximate": ("tanh",)},
        extended={"_other": _BROADCAST},
        reference=_sub_gelu,
        admissible=(_sub_gelu_by_steps,),
        description="""GELU of input - alpha * other: first the difference (`other` broadcasts to
            the input's shape), then x * Phi(x) with the normal distribution function Phi, or with
            approximate="tanh" 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).""",
        flops="10*M*N",
        promises=Promises(numbers=("other",), out=True),
    ),
    _task(
        "fused_tile_exp(input[*shape], dims=(2, 1))",
        dims={"M": "batch", "N": "spatial"},
        where={"shape": Variants("_rank", {2: "M, N", 1: "N"})},
        attributes={"dims": ((2,), (1, 3), (2, 1, 2), (3, 2))},
        reference=lambda input, dims: torch.exp(torch.tile(input, dims)),
        description="""Tile `input` as torch.tile does, dims[i] copies side by side along dim i,
            then the exponential of each element. Where `dims` has fewer entries than the input
            has dims, ones are put before them; where it has more, the input gets leading dims of
            size 1. exp overflows to infinity and underflows to 0 as the dtype does.""",
        flops="4*M*N*dims[0]",
        promises=Promises(out=True, gradients=True),
    ),
)
