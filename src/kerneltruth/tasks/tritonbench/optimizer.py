"""An optimizer, as what makes one; KernelBenchX has the function of a single step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kerneltruth.tasks.spec import Benchmark, Dim, Output, Promises, Task, task


def _sgd(
    params: Sequence[Tensor],
    _gradients_of_p0: Tensor | None,
    _gradients_of_p1: Tensor | None,
    **options: Any,
) -> tuple[Tensor, ...]:
    both = zip(params, (_gradients_of_p0, _gradients_of_p1), strict=False)
    return tuple(p if g is None else _steps(p, g, **options) for p, g in both)


def _steps(
    param: Tensor,
    gradients: Tensor,
    lr: float,
    momentum: float,
    weight_decay: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> Tensor:
    buffer = torch.zeros_like(param)
    for step, gradient in enumerate(gradients):
        gradient = (-gradient if maximize else gradient) + weight_decay * param
        buffer = momentum * buffer + (1 - dampening) * gradient if step else gradient
        if momentum != 0:
            gradient = gradient + momentum * buffer if nesterov else buffer
        param = param - lr * gradient
    return param


TASKS: tuple[Task, ...] = (
    task(
        "SGD(params=[p0[M, N], p1[K]?], _gradients_of_p0[S, M, N], _gradients_of_p1[S, K]?, "
        "lr=1e-3, momentum=0, weight_decay=0, dampening=0, nesterov=False, maximize=False)",
        category="Optimizer",
        dims={
            "S": Dim(symbol="S", role="batch", low=1, high=4),
            "M": "batch",
            "N": "spatial",
            "K": "spatial",
        },
        dtypes=("float32",),
        extended_dtypes=("float64",),
        attributes={
            "lr": (0.1,),
            "momentum": (0.9, 0.5),
            "weight_decay": (0.01, 2.0),
            "dampening": (0.5,),
            "nesterov": (True,),
            "maximize": (True,),
        },
        constraints=("not nesterov or (momentum > 0 and dampening == 0)",),
        outputs=(Output(name="p0"), Output(name="p1", when="'p1' in present")),
        mutates={"p0": "True", "p1": "True"},
        # Next to larger parameters a step of usual size would be lost in rounding.
        values=(-1.0, 1.0),
        reference=_sgd,
        description="""An optimizer: `params` is a list of one or two tensors, and what is returned
            has a method `step()`, which takes no arguments. Between steps every parameter p has its
            gradient in `p.grad`, or None, which leaves p as it is. In each step, with
            g = p.grad + weight_decay * p (-p.grad with `maximize=True`), p, written in place,
            becomes p - lr * d. With momentum 0, d is g. Else a buffer b becomes g in the first
            step and momentum * b + (1 - dampening) * g in the others, and d is b, or with
            `nesterov=True` (for dampening 0 only) g + momentum * b. One to four steps are taken,
            each with another gradient; then the parameters are compared.""",
        flops="7*S*(M*N + K)",
        bytes="5*itemsize*S*(M*N + K)",
        benchmark=Benchmark(dims={"S": 2, "M": 16, "N": 64, "K": 64}, distribution="normal"),
        perf=(
            {"S": 1, "M": 1024, "N": 1024, "K": 1024},
            {"S": 1, "M": 4096, "N": 4096, "K": 4096},
            {"S": 1, "M": 8192, "N": 8192, "K": 8192},
        ),
        promises=Promises(
            not_tried={
                "foreach": "it asks for another implementation, not for another result",
                "fused": "it asks for another implementation, not for another result",
                "differentiable": "gradients through a step are not compared",
            }
        ),
    ),
)
