"""A linear layer with an activation behind it."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks import dropped
from kerneltruth.tasks.dropped import keep, scaled
from kerneltruth.tasks.formulas import linear
from kerneltruth.tasks.spec import Benchmark, Dim, Role, Task, Variants, task

_DIMS: dict[str, Role | Dim] = {"M": "batch", "K": "contracted", "O": "channel"}
_BENCHMARK = Benchmark(dims={"M": 24, "K": 48, "O": 40}, distribution="normal")
_PERF = (
    {"M": 256, "K": 512, "O": 512},
    {"M": 2048, "K": 2048, "O": 2048},
    {"M": 8192, "K": 4096, "O": 4096},
)


def _sigmoid(input: Tensor, weight: Tensor, bias: Tensor | None, keep: float) -> Tensor:
    return scaled(torch.sigmoid(linear(input, weight, bias)), keep)


def _elu_by_exp(
    input: Tensor, weight: Tensor, bias: Tensor | None, alpha: float, inplace: bool
) -> Tensor:
    x = linear(input, weight, bias)
    return torch.where(x > 0, x, alpha * (torch.exp(x) - 1))


_task = partial(task, category="Fusion", dims=_DIMS, benchmark=_BENCHMARK, perf=_PERF)

TASKS: tuple[Task, ...] = (
    _task(
        "fused_dropout_sigmoid_linear(input[*shape], weight[O, K], bias[O]?, p=0.5, "
        "training=True, inplace=False)",
        where={"shape": Variants("_rank", {2: "M, K", 1: "K", 3: "2, M, K"})},
        attributes={"p": (0.0, 0.1, 1.0), "training": (False,), "inplace": (True,)},
        constraints=("_rank != 1 or M == 1",),
        reference=lambda input, weight, bias, p, training, inplace: _sigmoid(
            input, weight, bias, keep(p, training)
        ),
        outputs=dropped.outputs(),
        claims=dropped.claims(_sigmoid),
        random=True,
        description="""input @ weight.T + bias over the last dim of input, which may have any
            number of leading dims; then the sigmoid; then dropout: out[..., O] in the input's
            dtype. bias may be None. When training is True, each element is set to 0 with
            probability p, independently of all others and anew in each call, and else multiplied
            by 1 / (1 - p); with p = 1 all are 0. With training False or p = 0 nothing is
            dropped. inplace concerns intermediate results only: the inputs are never written.""",
        flops="M*O*(2*K + 5)",
    ),
    _task(
        "fused_elu_linear(input[M, K], weight[O, K], bias[O]?, alpha=1.0, inplace=False)",
        attributes={"alpha": (0.5, 2.0), "inplace": (True,)},
        reference=lambda input, weight, bias, alpha, inplace: F.elu(
            linear(input, weight, bias), alpha
        ),
        admissible=(_elu_by_exp,),
        description="""x = input @ weight.T + bias, then ELU: x where x > 0, else
            alpha * (exp(x) - 1); out[M, O] in the input's dtype. bias may be None; with K = 0
            the product is 0. inplace concerns intermediate results only: the inputs are never
            written.""",
        flops="M*O*(2*K + 4)",
    ),
)
