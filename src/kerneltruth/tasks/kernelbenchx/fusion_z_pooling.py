"""Fusions over images and channels without a convolution: adaptive pooling, batch norm."""

from __future__ import annotations

from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.spec import Benchmark, Output, Promises, Task, Variants, nonempty, task

_IMAGE = nonempty(N="batch", C="channel", H="spatial", W="spatial")
# Sums and powers of larger values may leave the range of float32 on the way to a moderate result.
_SUMMABLE = (-1024.0, 1024.0)
_PERF = (
    {"N": 8, "C": 64, "H": 32, "W": 32},
    {"N": 32, "C": 128, "H": 64, "W": 64},
    {"N": 64, "C": 256, "H": 64, "W": 64},
)


def _pool(x: Tensor, output_size: int | tuple[int, int]) -> Tensor:
    return F.adaptive_avg_pool2d(x, output_size)


def _pool_in_another_order(x: Tensor, output_size: int | tuple[int, int]) -> Tensor:
    """The same means, off by what another order of summation may lose of what was summed."""
    sizes = torch.nan_to_num(x.abs(), nan=0.0, posinf=0.0)
    return _pool(x, output_size) + torch.finfo(x.dtype).eps * _pool(sizes, output_size)


def _distance(one: Tensor, other: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(one - other, p, dim=(1, 2, 3), keepdim=keepdim)
    return norm + eps


def _pairwise_distance_adaptive_avg_pool2d(
    x1: Tensor,
    x2: Tensor,
    output_size: int | tuple[int, int],
    p: float,
    eps: float,
    keepdim: bool,
) -> Tensor:
    return _distance(_pool(x1, output_size), _pool(x2, output_size), p, eps, keepdim)


def _pairwise_distance_in_another_order(
    x1: Tensor,
    x2: Tensor,
    output_size: int | tuple[int, int],
    p: float,
    eps: float,
    keepdim: bool,
) -> Tensor:
    one = _pool_in_another_order(x1, output_size)
    return _distance(one, _pool(x2, output_size), p, eps, keepdim)


def _sigmoid_batch_norm(
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """The result, and with `training` the running statistics after the call.

    At working precision PyTorch rounds every step where the input has gaps, which is admissible.
    """
    gaps = torch.stack((input, input), -1)[..., 0]
    out = torch.sigmoid(
        F.batch_norm(gaps, running_mean, running_var, weight, bias, training, momentum, eps)
    )
    return (out, running_mean, running_var) if training else (out,)


TASKS: tuple[Task, ...] = (
    task(
        "fused_pairwise_distance_adaptive_avg_pool2d(x1[N, C, H, W], x2[*other], "
        "output_size=(2, 2), p=2.0, eps=1e-6, keepdim=False)",
        category="Fusion",
        where={"other": Variants("_x2", {"same": "N, C, H, W", "one": "1, C, H, W"})},
        extended={"_x2": ("one",)},
        dims=_IMAGE,
        attributes={
            "output_size": (1, (3, 2), (1, 5), 4),
            "p": (1.0, 3.0),
            "eps": (0.5,),
            "keepdim": (True,),
        },
        values=_SUMMABLE,
        reference=_pairwise_distance_adaptive_avg_pool2d,
        admissible=(_pairwise_distance_in_another_order,),
        description="""First adaptive average pooling of x1 and of x2 to output_size (an int for
            both dims, or a pair): window i of a dim of size H with O outputs goes from
            floor(i * H / O) to ceil((i + 1) * H / O), and H may be smaller than O. Then for each
            image the p-norm of the difference of the pooled images, over channels, rows and
            columns together, plus eps (added to the norm, once). The shape is [N], with keepdim
            [N, 1, 1, 1].""",
        flops="2*N*C*H*W",
        benchmark=Benchmark(dims={"N": 4, "C": 3, "H": 16, "W": 16}, distribution="normal"),
        perf=_PERF,
    ),
    task(
        "fused_sigmoid_adaptive_avg_pool2d(input[*shape], output_size=(4, 4))",
        category="Fusion",
        dims=_IMAGE,
        where={"shape": Variants("_rank", {4: "N, C, H, W", 3: "C, H, W"})},
        attributes={"output_size": (3, (3, 5), (1, 1), (2, 7))},
        extended={"_rank": (3,)},
        values=_SUMMABLE,
        reference=lambda input, output_size: torch.sigmoid(_pool(input, output_size)),
        admissible=(
            lambda input, output_size: torch.sigmoid(_pool_in_another_order(input, output_size)),
        ),
        description="""First adaptive average pooling of input[N, C, H, W] (or [C, H, W]) to
            output_size, an int for both dims or a pair: window i of a dim of size H with O
            outputs goes from floor(i * H / O) to ceil((i + 1) * H / O), and H may be smaller than
            O. Then the sigmoid of each mean.""",
        flops="N*C*H*W",
        benchmark=Benchmark(dims={"N": 2, "C": 4, "H": 16, "W": 16}, distribution="normal"),
        perf=_PERF,
    ),
    task(
        "fused_sigmoid_batch_norm(input[*shape], running_mean[C], running_var[C]: positive, "
        "weight[C]?, bias[C]?, training=False, momentum=0.1, eps=1e-5)",
        category="Fusion",
        dims=nonempty(N="reduced", C="channel", L="spatial"),
        where={
            "shape": Variants("_rank", {2: "N, C", 3: "N, C, L", 4: "N, C, L, 2"}),
            "pixels": lambda shape: prod(shape[2:]),
        },
        attributes={"training": (True,), "momentum": (0.5,), "eps": (0.25,)},
        extended={"_rank": (4,)},
        constraints=("not training or N * pixels > 1",),
        mutates={"running_mean": "training", "running_var": "training"},
        # Half precision keeps the normalized values before the sigmoid.
        values=(-4.0, 4.0),
        outputs=(
            Output(),
            Output(name="running_mean", when="training"),
            Output(name="running_var", when="training"),
        ),
        reference=_sigmoid_batch_norm,
        description="""First batch normalization over all dims but the second, the channels: x less
            the channel's mean over the square root of its variance plus eps, times weight and plus
            bias where they are not None; then the sigmoid. The result has the input's shape.
            Without `training` mean and variance are running_mean and running_var, which stay as
            they are. With it they are the batch's (the variance biased), and the running ones are
            updated in place: (1 - momentum) * running + momentum * batch's, where this variance
            is the unbiased one.""",
        flops="14*N*C*L",
        benchmark=Benchmark(dims={"N": 32, "C": 16, "L": 8}, distribution="normal"),
        perf=(
            {"N": 1024, "C": 512, "L": 1},
            {"N": 8192, "C": 2048, "L": 1},
            {"N": 16384, "C": 4096, "L": 1},
        ),
        promises=Promises(recipes=("far_from_zero",)),
    ),
)
