"""Normalizations of channels with something before or behind them."""

from __future__ import annotations

from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.formulas import narrowest, stored
from kerneltruth.tasks.spec import Benchmark, Dim, Output, Promises, Task, Variants, nonempty, task


def _group_norm(
    input1: Tensor,
    input2: Tensor,
    weight: Tensor,
    bias: Tensor,
    num_groups: int,
    eps: float,
) -> Tensor:
    return F.group_norm((input1 + input2) * input2, num_groups, weight, bias, eps)


def _group_norm_by_steps(
    input1: Tensor,
    input2: Tensor,
    weight: Tensor,
    bias: Tensor,
    num_groups: int,
    eps: float,
) -> Tensor:
    x = stored(stored(input1 + input2, input1, input2) * input2, input1, input2)
    groups = x.reshape(x.shape[0], num_groups, -1)
    centered = groups - groups.mean(-1, True)
    y = (centered / torch.sqrt(centered.square().mean(-1, True) + eps)).reshape(x.shape)
    each = (1, -1, *(1 for _ in x.shape[2:]))
    return y * weight.reshape(each) + bias.reshape(each)


def _hardsigmoid(  # noqa: PLR0913 - as many as the operator has
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    inplace: bool,
) -> tuple[Tensor, ...]:
    """The result, and with `training` the running statistics after the call."""
    y = F.batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)
    out = F.hardsigmoid(y)
    if running_mean is None or running_var is None or not training:
        return (out,)
    return out, running_mean, running_var


def _hardsigmoid_with_gaps(  # noqa: PLR0913 - as many as the operator has
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    inplace: bool,
) -> tuple[Tensor, ...]:
    """Where the input has gaps, PyTorch rounds every step to the inputs' dtype."""
    given = (x, running_mean, running_var, weight, bias)
    dtype = narrowest(*given)
    own, mean, var, factor, summand = (None if t is None else t.to(dtype, copy=True) for t in given)
    assert own is not None
    gaps = torch.stack((own, own), -1)[..., 0]
    outputs = _hardsigmoid(gaps, mean, var, factor, summand, training, momentum, eps, inplace)
    return tuple(t.to(x.dtype) for t in outputs)


TASKS: tuple[Task, ...] = (
    task(
        "fused_add_mul_groupnorm(input1[N, G * C, H, W], input2[*shape], weight[G * C], "
        "bias[G * C], num_groups:=G, eps=1e-5)",
        category="Fusion",
        dims={
            **nonempty(N="batch", G="channel"),
            "C": Dim(symbol="C", role="reduced", low=1, high=64),
            **nonempty(H="reduced", W="spatial"),
        },
        where={
            "shape": Variants(
                "_other", {"same": "N, G * C, H, W", "channel": "1, G * C, 1, 1", "image": "H, W"}
            )
        },
        attributes={"eps": (1e-2,)},
        constraints=("N * C * H * W > 1",),
        reference=_group_norm,
        admissible=(_group_norm_by_steps,),
        description="""x = (input1 + input2) * input2, where input2 has the shape of input1 or
            broadcasts to it, then group normalization: the channels (dim 1) of each image are cut
            into num_groups equal groups of neighbours; from each group, its positions included,
            its mean is subtracted and it is divided by sqrt(variance + eps), the variance being
            the biased one; then each channel is multiplied by its weight and its bias is added.
            The number of channels is a multiple of num_groups. The
            result has the shape and dtype of input1.""",
        flops="10*N*G*C*H*W",
        benchmark=Benchmark(dims={"N": 2, "G": 2, "C": 3, "H": 8, "W": 8}, distribution="normal"),
        perf=(
            {"N": 4, "G": 8, "C": 4, "H": 64, "W": 64},
            {"N": 16, "G": 32, "C": 8, "H": 64, "W": 64},
            {"N": 32, "G": 32, "C": 8, "H": 128, "W": 128},
        ),
        promises=Promises(recipes=("far_from_zero",), out=True, gradients=True),
    ),
    task(
        "fused_hardsigmoid_batch_norm(x[*shape], running_mean[C], running_var[C]: positive, "
        "weight[C]?, bias[C]?, training=False, momentum=0.1, eps=1e-5, inplace=False)",
        category="Fusion",
        dims=nonempty(N="batch", C="channel", H="reduced", W="spatial"),
        where={
            "shape": Variants("_rank", {4: "N, C, H, W", 2: "N, C", 3: "N, C, H * W"}),
            "pixels": lambda shape: prod(shape[2:]),
        },
        attributes={"training": (True,), "momentum": (0.5,), "eps": (1e-2,), "inplace": (True,)},
        constraints=("not training or N * pixels > 1",),
        reference=_hardsigmoid,
        admissible=(_hardsigmoid_with_gaps,),
        mutates={"running_mean": "training", "running_var": "training"},
        outputs=(
            Output(name="out"),
            Output(name="running_mean", when="training"),
            Output(name="running_var", when="training"),
        ),
        description="""Batch normalization over dim 1, then the hard sigmoid
            min(max(y / 6 + 1 / 2, 0), 1). With training False, y is
            (x - running_mean) / sqrt(running_var + eps) times weight plus bias, per channel;
            weight and bias may be None. With training True, the mean and the biased variance of
            the channel over all other dims stand in for them, and running_mean and running_var
            are overwritten by (1 - momentum) times themselves plus momentum times that mean and
            the unbiased variance (the sum of squares over n - 1). x has two to four dims; inplace
            concerns intermediate results only. The result has the shape and dtype of x, the
            statistics have that dtype too.""",
        flops="8*N*C*H*W",
        benchmark=Benchmark(dims={"N": 2, "C": 3, "H": 8, "W": 8}, distribution="normal"),
        perf=(
            {"N": 8, "C": 32, "H": 64, "W": 64},
            {"N": 32, "C": 64, "H": 64, "W": 64},
            {"N": 64, "C": 128, "H": 128, "W": 128},
        ),
        promises=Promises(recipes=("far_from_zero",)),
    ),
)
