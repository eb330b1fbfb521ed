"""Averages over windows of one or two spatial dims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.spec import Dim, Task, Variants, nonempty, task


def _avg_pool1d(input: Tensor, kernel_size: int, stride: int | None, padding: int) -> Tensor:
    return F.avg_pool1d(input, kernel_size, stride or kernel_size, padding)


def _adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    pooled: Tensor = F.adaptive_avg_pool2d(input, output_size)
    return pooled


def _in_another_order(pool: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same means, off by what another order of summation may lose of what was summed."""

    def pooled(input: Tensor, **attributes: Any) -> Tensor:
        sizes = torch.nan_to_num(input.abs(), nan=0.0, posinf=0.0)
        lost = torch.finfo(input.dtype).eps * pool(sizes, **attributes)
        return pool(input, **attributes) + lost

    return pooled


_CHANNELS = {
    "N": Dim(symbol="N", role="batch"),
    "C": Dim(symbol="C", role="channel", low=1),
}


def _output_size(P: int, Q: int, _size: str) -> int | tuple[int | None, int]:
    if _size == "int":
        return P
    return (P, Q) if _size == "pair" else (None, Q)


TASKS: tuple[Task, ...] = (
    task(
        "avg_pool1d(input[*shape], kernel_size=3, stride=None, padding=0)",
        category="Pooling",
        dims={**_CHANNELS, "L": Dim(symbol="L", role="spatial", low=1)},
        where={"shape": Variants("_batched", {True: "N, C, L", False: "C, L"})},
        attributes={"kernel_size": (2, 5, 1), "stride": (1, 2, 7), "padding": (1, 2)},
        extended={"_batched": (False,)},
        constraints=("2*padding <= kernel_size", "kernel_size <= L + 2*padding"),
        reference=_avg_pool1d,
        admissible=(_in_another_order(_avg_pool1d),),
        description="""The mean over each window of kernel_size elements of the last dim, in the
            dtype of the input; input is [N, C, L] or [C, L]. Windows are `stride` apart, or
            kernel_size apart if stride is None. Each row is padded with `padding` zeros on both
            sides (at most half of kernel_size), and these count: the divisor is always
            kernel_size. There are (L + 2 * padding - kernel_size) // stride + 1 windows.""",
        flops="kernel_size*N*C*L//(stride or kernel_size)",
        benchmark={"N": 4, "C": 8, "L": 128},
        perf=(
            {"N": 16, "C": 64, "L": 4096},
            {"N": 32, "C": 256, "L": 8192},
            {"N": 64, "C": 256, "L": 16384},
        ),
    ),
    task(
        "adaptive_avg_pool2d(input[*shape], output_size:=size, _size='pair', _batched=True)",
        category="Pooling",
        dims={
            **_CHANNELS,
            **nonempty(H="spatial", W="spatial"),
            "P": Dim(symbol="P", role="spatial", low=1, high=33),
            "Q": Dim(symbol="Q", role="spatial", low=1, high=33),
        },
        where={
            "size": _output_size,
            "shape": Variants("_batched", {True: "N, C, H, W", False: "C, H, W"}),
        },
        attributes={"_size": ("int", "none"), "_batched": (False,)},
        reference=_adaptive_avg_pool2d,
        admissible=(_in_another_order(_adaptive_avg_pool2d),),
        description="""The mean over each cell of a grid of windows of the last two dims, in the
            dtype of the input; input is [N, C, H, W] or [C, H, W]. output_size is a pair (P, Q), or
            an int for both; a None in the pair keeps the input's size. The i-th of P windows over
            H rows holds the rows from floor(i * H / P) up to, and not including,
            ceil((i + 1) * H / P); columns likewise. Windows may overlap, and P may exceed H.""",
        flops="N*C*H*W",
        benchmark={"N": 2, "C": 8, "H": 32, "W": 32, "P": 7, "Q": 7},
        perf=(
            {"N": 16, "C": 64, "H": 56, "W": 56, "P": 7, "Q": 7},
            {"N": 64, "C": 256, "H": 56, "W": 56, "P": 7, "Q": 7},
            {"N": 64, "C": 512, "H": 112, "W": 112, "P": 7, "Q": 7},
        ),
    ),
)
