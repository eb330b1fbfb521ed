"""Fusions with dropout in them.

Where nothing is random they are judged by a bound, else by what any fair choice of dropped elements
allows.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks import dropped
from kerneltruth.tasks.dropped import keep, scaled
from kerneltruth.tasks.dropped_within import dropped_before_product, dropped_in_block
from kerneltruth.tasks.spec import (
    Benchmark,
    Dim,
    Output,
    Promises,
    Scalar,
    Sizes,
    Task,
    Variants,
    nonempty,
    task,
)

_P: tuple[Scalar, ...] = (0.0, 0.25, 1.0)
_RANDOM = "training and 0 < p < 1"
_MODERATE = (-4.0, 4.0)


def _by(random: str) -> tuple[Output, ...]:
    """The one output: judged by claims where `random` holds, else by the bound."""
    return (
        Output(compare="claims", when=random, spared=("gain",)),
        Output(when=f"not ({random})"),
    )


def _mv_logsoftmax(input: Tensor, vec: Tensor, dim: int, keep: float) -> Tensor:
    return scaled(torch.log_softmax(input @ vec, dim), keep)


def _log_probabilities(input1: Tensor, input2: Tensor, other: Tensor, dim: int) -> Tensor:
    return torch.log_softmax(input1 * input2 + other, dim)


def _mul_add_logsoftmax_bmm(
    mat2: Tensor, p: float, training: bool, inplace: bool, **summands: Any
) -> Tensor:
    del inplace
    logs = _log_probabilities(**summands)
    return torch.bmm(torch.zeros_like(logs) if training and p == 1 else logs, mat2)


def _transformer_block(
    input: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    residual: Tensor,
    dropout_p: float,
    eps: float,
) -> Tensor:
    del dropout_p
    mixed = torch.softmax(input @ weight1, -1) @ weight2 + residual
    return F.layer_norm(mixed, mixed.shape[-1:], eps=eps)


_BATCH = nonempty(B="batch", M="spatial", K="contracted", N="channel")


def _fused_transformer_block_residual(M: int, O: int, _rank: int, _residual: str) -> Sizes:
    if _rank == 2 and _residual == "same":
        return (M, O)
    if _residual == "same":
        return (M, 2, O)
    return (O,)


TASKS: tuple[Task, ...] = (
    task(
        "fused_mul_add_logsoftmax_dropout_bmm(input1[B, M, K], input2[*shape], other[*added], "
        "mat2[B, K, N], p=0.5, training=True, inplace=False, dim=-1)",
        category="Fusion",
        dims=_BATCH,
        where={
            "shape": Variants("_input2", {"same": "B, M, K", "plane": "M, K"}),
            "added": Variants("_other", {"same": "B, M, K", "plane": "M, K"}),
        },
        attributes={"p": _P, "training": (False,), "inplace": (True,), "dim": (1, 2, 0)},
        constraints=(
            f"not ({_RANDOM}) or (B * M >= 32 and K >= 2 and K + K // 2 <= N)",
            f"not ({_RANDOM}) or dim != 0 or B >= 2",
        ),
        values=_MODERATE,
        outputs=_by(_RANDOM),
        claims=dropped_before_product,
        random=True,
        reference=_mul_add_logsoftmax_bmm,
        description="""log_softmax of input1 * input2 + other along `dim` of [B, M, K] (input2 and
            other broadcast); then dropout: with `training` each element becomes 0 with chance p,
            by itself, and is divided by 1 - p otherwise (p of 1 gives zeros), while without
            `training` nothing changes; last the batched matrix product with mat2[B, K, N].
            `inplace` speaks of intermediate results: inputs stay as they are.""",
        flops="2*B*M*K*N + 10*B*M*K",
        benchmark=Benchmark(dims={"B": 2, "M": 16, "K": 16, "N": 32}, distribution="normal"),
        perf=(
            {"B": 8, "M": 256, "K": 256, "N": 512},
            {"B": 32, "M": 1024, "K": 512, "N": 1024},
            {"B": 64, "M": 2048, "K": 512, "N": 1024},
        ),
        promises=Promises(out=True, gradients=True),
    ),
    task(
        "fused_mv_logsoftmax_dropout(input[M, K], vec[K], p=0.5, training=True, inplace=False, "
        "dim=0)",
        category="Fusion",
        dims=nonempty(M="reduced", K="contracted"),
        attributes={"p": _P, "training": (False,), "inplace": (True,), "dim": (-1,)},
        constraints=(f"not ({_RANDOM}) or M >= 80",),
        values=_MODERATE,
        outputs=dropped.outputs(),
        claims=dropped.claims(_mv_logsoftmax),
        random=True,
        reference=lambda input, vec, p, training, inplace, dim: _mv_logsoftmax(
            input, vec, dim, keep(p, training)
        ),
        description="""The matrix-vector product of input[M, K] and vec[K]; log_softmax over its M
            elements (dim is 0 or -1); last dropout: with `training` each element becomes 0 with
            probability p, by itself, and is divided by 1 - p otherwise (p of 1 gives zeros);
            without `training` nothing changes. `inplace` speaks of intermediate results.""",
        flops="2*M*K + 6*M",
        benchmark=Benchmark(dims={"M": 128, "K": 64}, distribution="normal"),
        perf=({"M": 1024, "K": 1024}, {"M": 8192, "K": 8192}, {"M": 32768, "K": 8192}),
        promises=Promises(out=True, gradients=True),
    ),
    task(
        "fused_transformer_block(input[*input_shape], weight1[D, K], weight2[K, O], "
        "residual[*residual_shape]: unlimited, dropout_p=0.1, eps=1e-5, _rank=2, _residual='same')",
        category="Fusion",
        dims={
            **nonempty(M="batch", D="contracted", K="contracted"),
            "O": Dim(symbol="O", role="channel", low=2),
        },
        where={
            "input_shape": Variants("_rank", {2: "M, D", 3: "M, 2, D"}),
            "residual_shape": _fused_transformer_block_residual,
        },
        attributes={
            "dropout_p": (0.0, 0.5),
            "eps": (1e-2, 1.0),
            "_rank": (3,),
            "_residual": ("row",),
        },
        constraints=("dropout_p == 0 or M >= 32",),
        # Larger values leave one share of 1 per row, which tells nothing about dropout.
        values=(-1.5, 1.5),
        outputs=_by("0 < dropout_p < 1"),
        claims=dropped_in_block,
        random=True,
        reference=_transformer_block,
        description="""softmax of input @ weight1 along the last dim, with input[..., D] and
            weight1[D, K]; then dropout: each element becomes 0 with probability dropout_p, by
            itself, and is divided by 1 - dropout_p otherwise (there is no evaluation mode); then
            the product with weight2[K, O]; then `residual` is added, which broadcasts to the
            product; last layer normalization over the last dim, without weight and bias: less the
            mean, over the square root of the biased variance plus eps.""",
        flops="2*M*D*K + 2*M*K*O + 6*M*K + 9*M*O",
        benchmark=Benchmark(dims={"M": 32, "D": 32, "K": 48, "O": 32}, distribution="normal"),
        perf=(
            {"M": 512, "D": 512, "K": 512, "O": 512},
            {"M": 4096, "D": 1024, "K": 4096, "O": 1024},
            {"M": 16384, "D": 4096, "K": 4096, "O": 4096},
        ),
        promises=Promises(recipes=("far_from_zero",), out=True),
    ),
)
