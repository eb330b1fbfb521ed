"""The five operators of the earlier list that no other suite has."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.spec import Dim, Output, Role, Task, Variants, nonempty, task

_PLAIN: dict[str, Role] = {"M": "batch", "N": "channel"}
_PLANE: dict[str, Role] = {"M": "reduced", "N": "reduced"}
_SHAPE = Variants("_rank", {2: "M, N", 1: "N", 3: "M, 2, N"})
_SMALL = {"M": 32, "N": 128}
_PERF = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
_LIMIT = Variants("_limits", {"row": "N * dims[-1]", "scalar": ""})


def _l1_loss(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    error = (input - target).abs()
    if reduction == "none":
        return error
    return error.mean() if reduction == "mean" else error.sum()


def _max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any
) -> Tensor:
    pooled: Tensor = F.max_pool2d(input, kernel_size, stride, padding, dilation)
    return pooled


def _tile_clamp(input: Tensor, dims: Any, min_val: Tensor, max_val: Tensor) -> Tensor:
    return torch.clamp(torch.tile(input, dims), min_val, max_val)


TASKS: tuple[Task, ...] = (
    task(
        "gather(input[M, N], dim=1, index[I, J]: index(extent))",
        category="Index",
        dims={
            **nonempty(M="batch", N="channel"),
            "I": "batch",
            "J": "channel",
        },
        where={"extent": lambda M, N, dim: N if dim % 2 else M},
        attributes={"dim": (0, -1, -2)},
        extended={"dim": (-1, -2)},
        constraints=("I <= M or dim % 2 == 0", "J <= N or dim % 2 == 1"),
        extended_dtypes=("float64",),
        reference=lambda input, dim, index: input.gather(dim, index),
        description="""out[i, j] = input[i, index[i, j]] for dim 1 (or -1) and input[index[i, j], j]
            for dim 0 (or -2), in input's dtype. The int64 index may be shorter than the input
            along the other dim.""",
        flops="0",
        benchmark={"M": 32, "N": 64, "I": 32, "J": 64},
        perf=(
            {"M": 1024, "N": 1024, "I": 1024, "J": 1024},
            {"M": 4096, "N": 4096, "I": 4096, "J": 4096},
            {"M": 8192, "N": 8192, "I": 8192, "J": 8192},
        ),
    ),
    task(
        "mul_int8(input[M, N]: int8, other[*shape]: int8)",
        category="Math",
        dims=_PLAIN,
        where={"shape": Variants("_other", {"same": "M, N", "row": "N", "scalar": ""})},
        extended={"_other": ("scalar",)},
        dtypes=("int8",),
        outputs=(Output(compare="exact"),),
        reference=lambda input, other: input * other,
        description="""input * other of two int8 tensors, as int8: what does not fit wraps around.
            other has input's shape or broadcasts to it.""",
        flops="M*N",
        benchmark=_SMALL,
        perf=_PERF,
    ),
    task(
        "l1_loss(input[*shape], target[*shape], reduction='mean')",
        category="Loss",
        dims=_PLANE,
        where={"shape": _SHAPE},
        attributes={"reduction": ("none", "sum")},
        reference=_l1_loss,
        description="""|input - target| of two tensors of one shape; with reduction "mean" or "sum"
            the mean or sum of all elements, a tensor of no dims.""",
        flops="2*M*N",
        benchmark=_SMALL,
        perf=_PERF,
    ),
    task(
        "max_pool2d(input[N, C, H, W], kernel_size=3, stride=None, padding=0, dilation=1)",
        category="Pooling",
        dims={
            "N": Dim(symbol="N", role="batch"),
            **nonempty(C="channel", H="spatial", W="spatial"),
        },
        attributes={
            "kernel_size": (2, 5),
            "stride": (1, 2),
            "padding": (1,),
            "dilation": (2,),
        },
        extended={"dilation": (2,)},
        constraints=(
            "2*padding <= kernel_size",
            "dilation*(kernel_size - 1) + 1 <= H + 2*padding",
            "dilation*(kernel_size - 1) + 1 <= W + 2*padding",
        ),
        reference=_max_pool2d,
        description="""The largest value of each square window of kernel_size rows and columns,
            dilation apart; windows are `stride` apart, or kernel_size apart if stride is None.
            Padding never wins, a NaN in the window does.""",
        flops="kernel_size**2*N*C*H*W//(stride or kernel_size)**2",
        benchmark={"N": 2, "C": 4, "H": 32, "W": 32},
        perf=(
            {"N": 16, "C": 64, "H": 56, "W": 56},
            {"N": 32, "C": 128, "H": 112, "W": 112},
            {"N": 64, "C": 128, "H": 112, "W": 112},
        ),
    ),
    task(
        "tile_clamp(input[M, N], dims=(2, 1), min_val[*limit], max_val[*limit])",
        category="Broadcast",
        dims={"M": "batch", "N": "spatial"},
        where={"limit": _LIMIT},
        attributes={"dims": ((1, 2), (3, 2))},
        reference=_tile_clamp,
        description="""Tile input [M, N] as torch.tile does, dims[i] copies side by side along dim
            i, then clamp each element to [min_val, max_val], two tensors that broadcast to the
            tiled shape; where min_val is the larger, max_val is right. NaN stays NaN.""",
        flops="2*M*N*dims[0]*dims[1]",
        benchmark={"M": 16, "N": 128},
        perf=({"M": 512, "N": 1024}, {"M": 2048, "N": 4096}, {"M": 4096, "N": 8192}),
    ),
)
