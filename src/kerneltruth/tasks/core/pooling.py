"""Pooling over one or two spatial dims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from kerneltruth.tasks.spec import Task, nonempty, task


def _avg_pool1d(
    input: torch.Tensor,
    kernel_size: int,
    stride: int,
    padding: int,
    ceil_mode: bool,
    count_include_pad: bool,
) -> torch.Tensor:
    return F.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def _adaptive_avg_pool2d(input: torch.Tensor, output_size: tuple[int, int]) -> torch.Tensor:
    return F.adaptive_avg_pool2d(input, (output_size[0], output_size[1]))


def _in_another_order(pool: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The same means, off by what another order of summation may lose of what was summed."""

    def pooled(input: torch.Tensor, **attributes: Any) -> torch.Tensor:
        sizes = torch.nan_to_num(input.abs(), nan=0.0, posinf=0.0)
        lost = torch.finfo(input.dtype).eps * pool(sizes, **attributes)
        return pool(input, **attributes) + lost

    return pooled


TASKS: tuple[Task, ...] = (
    task(
        "avg_pool1d(input[C, L], kernel_size=4, stride=2, padding=1, ceil_mode=False, "
        "count_include_pad=True)",
        category="Pooling",
        dims=nonempty(C="channel", L="spatial"),
        attributes={
            "kernel_size": (3,),
            "ceil_mode": (True,),
            "count_include_pad": (False,),
        },
        constraints=("2*padding <= kernel_size", "kernel_size <= L + 2*padding"),
        reference=_avg_pool1d,
        admissible=(_in_another_order(_avg_pool1d),),
        description="""Mean over windows of kernel_size, stride apart, of each row, which is padded
            with zeros on both sides. Padding counts in the divisor unless count_include_pad is
            False. ceil_mode rounds the number of windows up, as in torch.""",
        flops="kernel_size*C*(L//stride)",
        benchmark={"C": 16, "L": 128},
        perf=({"C": 1024, "L": 1024}, {"C": 4096, "L": 4096}, {"C": 8192, "L": 8192}),
    ),
    task(
        "max_pool2d(input[C, H, W], kernel_size=3, stride=2, padding=1)",
        category="Pooling",
        dims=nonempty(C="channel", H="spatial", W="spatial"),
        attributes={"kernel_size": (2,), "stride": (1, 3), "padding": (0,)},
        constraints=("2*padding <= kernel_size", "kernel_size <= min(H, W) + 2*padding"),
        reference=lambda input, kernel_size, stride, padding: F.max_pool2d(
            input, kernel_size, stride, padding
        ),
        description="""Largest value of square windows of kernel_size, stride apart; padding never
            wins, a NaN in the window does.""",
        flops="kernel_size**2*C*(H//stride)*(W//stride)",
        benchmark={"C": 4, "H": 32, "W": 32},
        perf=(
            {"C": 64, "H": 128, "W": 128},
            {"C": 256, "H": 256, "W": 256},
            {"C": 1024, "H": 256, "W": 256},
        ),
    ),
    task(
        "adaptive_avg_pool2d(input[C, H, W], output_size=(4, 4))",
        category="Pooling",
        dims=nonempty(C="channel", H="spatial", W="spatial"),
        attributes={"output_size": ((3, 5), (1, 1))},
        reference=_adaptive_avg_pool2d,
        admissible=(_in_another_order(_adaptive_avg_pool2d),),
        description="""Mean over a grid of windows: window i of a dim of size H with O outputs goes
            from floor(i * H / O) to ceil((i + 1) * H / O). H may be smaller than O.""",
        flops="C*H*W",
        benchmark={"C": 8, "H": 32, "W": 32},
        perf=(
            {"C": 256, "H": 64, "W": 64},
            {"C": 1024, "H": 128, "W": 128},
            {"C": 4096, "H": 128, "W": 128},
        ),
    ),
)
