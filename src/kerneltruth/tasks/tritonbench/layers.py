"""Convolution, normalization and contraction with what goes with them."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.formulas import stored
from kerneltruth.tasks.kernelbenchx.convolution import (
    CONVOLVABLE,
    FLOPS,
    IMAGE,
    SAYS_WINDOWS,
    SIZES,
    WINDOWS,
)
from kerneltruth.tasks.spec import (
    Benchmark,
    Dim,
    Output,
    Promises,
    Sizes,
    Task,
    Variants,
    nonempty,
    task,
)


def _sigmoid_conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
) -> Tensor:
    return torch.sigmoid(F.conv2d(input, weight, bias, stride, padding, dilation, groups))


def _normalized(
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    # At working precision PyTorch rounds every step where the input has gaps, which is admissible.
    gaps = torch.stack((input, input), -1)[..., 0]
    return F.batch_norm(gaps, running_mean, running_var, weight, bias, training, momentum, eps)


def _silu_batch_norm(
    running_mean: Tensor, running_var: Tensor, training: bool, **more: Any
) -> tuple[Tensor, ...]:
    """The result, and with `training` the running statistics after the call."""
    out = F.silu(
        _normalized(running_mean=running_mean, running_var=running_var, training=training, **more)
    )
    return (out, running_mean, running_var) if training else (out,)


def _silu_in_steps(
    running_mean: Tensor, running_var: Tensor, training: bool, **more: Any
) -> tuple[Tensor, ...]:
    """With the sigmoid kept, as PyTorch has it when it is written out."""
    x = _normalized(running_mean=running_mean, running_var=running_var, training=training, **more)
    out = x * torch.sigmoid(x)
    return (out, running_mean, running_var) if training else (out,)


def _silu_of_stored(
    running_mean: Tensor, running_var: Tensor, training: bool, **more: Any
) -> tuple[Tensor, ...]:
    """With a channel's scale and shift, and what they give, kept in the inputs' dtype."""
    x, weight, bias = more["input"], more["weight"], more["bias"]
    inputs = x, running_mean.clone(), running_var.clone(), weight, bias
    _normalized(running_mean=running_mean, running_var=running_var, training=training, **more)
    mean, variance = inputs[1:3]
    if training:
        over = [d for d in range(x.ndim) if d != 1]
        mean, variance = x.mean(over), x.var(over, correction=0)
    scale = torch.rsqrt(variance + more["eps"]) * (1.0 if weight is None else weight)
    shift = (0.0 if bias is None else bias) - mean * scale
    scale, shift = (stored(t, *inputs).view(-1, *[1] * (x.ndim - 2)) for t in (scale, shift))
    out = F.silu(stored(x * scale + shift, *inputs))
    return (out, running_mean, running_var) if training else (out,)


def _tensordot(a: Tensor, b: Tensor, dims: Any) -> Tensor:
    product: Tensor = torch.tensordot(a, b, dims=dims)
    return product


_DIMS_OF_A = {"two": "M, K, L", "one": "M, L, K", "lists": "K, M, L", "stretched": "M, 1, L"}
_DIMS_OF_B = {"two": "K, L, N", "one": "K, N", "lists": "L, N, K", "stretched": "K, L, N"}


def _contracted(_dims: str) -> int | tuple[Sizes, Sizes]:
    if _dims in ("two", "stretched"):
        return 2
    return 1 if _dims == "one" else ((2, 0), (0, 2))


TASKS: tuple[Task, ...] = (
    task(
        "sigmoid_conv2d(input[N, C, H, W], weight[O, C // groups, P, Q], bias[O]?, stride=1, "
        "padding=0, dilation=1, groups=1)",
        category="Fusion",
        dims=IMAGE,
        where=SIZES,
        attributes=WINDOWS,
        constraints=CONVOLVABLE,
        # So that the sigmoid is not 0 or 1 nearly everywhere.
        values=(-1.0, 1.0),
        reference=_sigmoid_conv2d,
        description=f"""1 / (1 + exp(-c)) of each element c of a 2D convolution, in the dtype of the
            input: the cross-correlation of input [N, C, H, W] with weight [O, C / groups, P, Q],
            plus bias [O] per output channel where it is given. {SAYS_WINDOWS}""",
        flops=FLOPS,
        benchmark={"N": 2, "C": 8, "O": 8, "H": 16, "W": 16, "P": 3, "Q": 3},
        perf=(
            {"N": 8, "C": 64, "O": 64, "H": 56, "W": 56, "P": 3, "Q": 3},
            {"N": 32, "C": 128, "O": 128, "H": 56, "W": 56, "P": 3, "Q": 3},
            {"N": 64, "C": 256, "O": 256, "H": 56, "W": 56, "P": 3, "Q": 3},
        ),
        promises=Promises(out=True),
    ),
    task(
        "silu_batch_norm(input[*shape], running_mean[C], running_var[C]: positive, weight[C]?, "
        "bias[C]?, training=False, momentum=0.1, eps=1e-5)",
        category="Fusion",
        dims=nonempty(N="reduced", C="channel", L="spatial"),
        where={
            "shape": Variants("_rank", {2: "N, C", 3: "N, C, L", 4: "N, C, L, 2"}),
            "pixels": lambda shape: prod(shape[2:]),
        },
        attributes={"training": (True,), "momentum": (0.5,), "eps": (0.25,)},
        constraints=("not training or N * pixels > 1",),
        mutates={"running_mean": "training", "running_var": "training"},
        # Half precision keeps the normalized values before the sigmoid.
        values=(-4.0, 4.0),
        outputs=(
            Output(),
            Output(name="running_mean", when="training"),
            Output(name="running_var", when="training"),
        ),
        reference=_silu_batch_norm,
        admissible=(_silu_in_steps, _silu_of_stored),
        description="""First batch normalization over all dims but the second, the channels: x less
            the channel's mean over the square root of its variance plus eps, times weight and plus
            bias where they are not None; then SiLU, z / (1 + exp(-z)). The result has the input's
            shape and dtype. Without `training` mean and variance are running_mean and running_var,
            which stay as they are. With it they are the batch's (the variance biased), and the
            running ones are updated in place: (1 - momentum) * running + momentum * batch's, where
            this variance is the unbiased one.""",
        flops="14*N*C*L",
        benchmark=Benchmark(dims={"N": 32, "C": 16, "L": 8}, distribution="normal"),
        perf=(
            {"N": 1024, "C": 512, "L": 1},
            {"N": 8192, "C": 2048, "L": 1},
            {"N": 16384, "C": 4096, "L": 1},
        ),
        promises=Promises(recipes=("far_from_zero",)),
    ),
    task(
        "tensordot(a[*a_shape], b[*b_shape], dims:=contracted)",
        category="MatrixMultiply",
        dims={
            "M": "batch",
            "N": "channel",
            "K": Dim(symbol="K", role="contracted", high=65),
            "L": Dim(symbol="L", role="contracted", high=65),
        },
        where={
            "contracted": _contracted,
            "a_shape": Variants("_dims", _DIMS_OF_A),
            "b_shape": Variants("_dims", _DIMS_OF_B),
        },
        reference=_tensordot,
        description="""The contraction of a with b, in the dtype of the inputs. An integer `dims`
            contracts the last `dims` dims of a with the first `dims` of b; a pair of lists names
            the dims of a and those of b that are contracted with each other, in that order. One of
            size 1 is repeated to match the other. What is left of a's dims comes first, then what
            is left of b's.""",
        flops="2*M*N*K*L",
        benchmark={"M": 32, "N": 32, "K": 8, "L": 8},
        perf=(
            {"M": 512, "N": 512, "K": 16, "L": 32},
            {"M": 2048, "N": 2048, "K": 32, "L": 64},
            {"M": 4096, "N": 4096, "K": 64, "L": 64},
        ),
    ),
)
