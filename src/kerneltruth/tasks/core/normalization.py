"""Normalizations over the last dim."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.spec import Benchmark, Dim, Role, Task, task

_ROWS: dict[str, Role | Dim] = {"M": "batch", "N": "reduced"}
_BENCHMARK = Benchmark(dims={"M": 8, "N": 256}, distribution="normal")
_TOLERANCE = {"float32": 1e-4, "float16": 5e-2}
_LARGE = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})


def _layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def _layer_norm_by_steps(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    centered = x - x.mean(-1, True)
    y = centered / torch.sqrt(centered.square().mean(-1, True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


_task = partial(
    task,
    category="Normalization",
    dims=_ROWS,
    benchmark=_BENCHMARK,
    tolerance=_TOLERANCE,
    perf=_LARGE,
)

TASKS: tuple[Task, ...] = (
    _task(
        "layer_norm(x[M, N], weight[N]?, bias[N]?, eps=1e-5)",
        reference=_layer_norm,
        description="""Each row less its mean, over the square root of its (biased) variance plus
            eps; times `weight` and plus `bias`, where they are not None.""",
        flops="8*M*N",
        admissible=(_layer_norm_by_steps,),
    ),
    _task(
        "rms_norm(x[M, N], weight[N], eps=1e-6)",
        # Not written out: at working precision PyTorch squares in float32, and so must a kernel.
        reference=lambda x, weight, eps: F.rms_norm(x, x.shape[-1:], weight, eps),
        attributes={"eps": (1e-2,)},
        description="""Each row over the square root of its mean square plus eps, times
            `weight`.""",
        flops="4*M*N",
    ),
    _task(
        "l2_norm(x[M, N], eps=1e-6)",
        reference=lambda x, eps: (
            x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(eps)
        ),
        description="Each row over its Euclidean norm, or over eps where the norm is smaller.",
        flops="3*M*N",
        admissible=(lambda x, eps: x / x.square().sum(-1, True).sqrt().clamp_min(eps),),
    ),
)
