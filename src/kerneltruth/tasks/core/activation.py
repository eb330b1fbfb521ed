"""Activations: elementwise operators, and the softmax family over the last dim."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.formulas import gelu_by_formula
from kerneltruth.tasks.spec import Benchmark, Dim, Promises, Role, Task, task

_PLANE: dict[str, Role | Dim] = {"M": "batch", "N": "spatial"}
_ROWS: dict[str, Role | Dim] = {"B": "batch", "N": "reduced"}
_UNIFORM = {"M": 16, "N": 256}
_SOFTMAX = Benchmark(dims={"B": 8, "N": 256}, distribution="normal")
_LARGE = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
_LARGE_ROWS = ({"B": 1024, "N": 1024}, {"B": 4096, "N": 4096}, {"B": 8192, "N": 8192})

_ELEMENTWISE = {"float32": 1e-4, "float16": 5e-2}
_PIECEWISE = {"float32": 1e-5, "float16": 1e-3}


def _elu_by_exp(input: Tensor, alpha: float) -> Tensor:
    return torch.where(input > 0, input, alpha * (torch.exp(input) - 1))


def _softplus_by_log(input: Tensor, beta: float, threshold: float) -> Tensor:
    scaled = input * beta
    soft = scaled.clamp_min(0) + torch.log(1 + torch.exp(-scaled.abs()))
    return torch.where(scaled > threshold, input, soft / beta)


def _softmax_by_exp(input: Tensor, dim: int) -> Tensor:
    numerator = torch.exp(input - input.amax(dim, True)) if input.numel() else input.clone()
    return numerator / numerator.sum(dim, True)


_task = partial(task, category="Activation", dims=_PLANE, perf=_LARGE)

TASKS: tuple[Task, ...] = (
    _task(
        "relu(input[M, N])",
        reference=lambda input: torch.relu(input),
        description="The larger of each element and 0; NaN stays NaN.",
        flops="M*N",
        benchmark=_UNIFORM,
        extended_dtypes=("float64", "int32"),
        tolerance=_PIECEWISE,
    ),
    _task(
        "leaky_relu(input[M, N], negative_slope=0.01)",
        reference=lambda input, negative_slope: F.leaky_relu(input, negative_slope),
        description="Each element, times `negative_slope` where it is negative.",
        flops="2*M*N",
        benchmark=_UNIFORM,
        attributes={"negative_slope": (0.2,)},
        tolerance=_PIECEWISE,
    ),
    _task(
        "sigmoid(input[M, N])",
        reference=lambda input: torch.sigmoid(input),
        description="1 / (1 + exp(-x)) of each element, over the whole range of the dtype.",
        flops="4*M*N",
        benchmark=Benchmark(dims=_UNIFORM, distribution="normal"),
        tolerance=_ELEMENTWISE,
        admissible=(lambda input: 1 / (1 + torch.exp(-input)),),
    ),
    _task(
        "tanh(input_tensor[M, N])",
        reference=lambda input_tensor: torch.tanh(input_tensor),
        description="The hyperbolic tangent of each element, over the whole range of the dtype.",
        flops="6*M*N",
        benchmark=Benchmark(dims=_UNIFORM, distribution="normal"),
        tolerance=_ELEMENTWISE,
    ),
    _task(
        "silu(input[M, N])",
        reference=lambda input: F.silu(input),
        description="x * sigmoid(x) of each element, over the whole range of the dtype.",
        flops="5*M*N",
        benchmark=Benchmark(dims=_UNIFORM, distribution="normal"),
        tolerance=_ELEMENTWISE,
        admissible=(lambda input: input * torch.sigmoid(input),),
    ),
    _task(
        'gelu(input[M, N], approximate="none")',
        reference=lambda input, approximate: F.gelu(input, approximate=approximate),
        description="""x * Phi(x) of each element, Phi being the normal distribution function; with
            `approximate="tanh"` its approximation by tanh.""",
        flops="8*M*N",
        benchmark=_UNIFORM,
        attributes={"approximate": ("tanh",)},
        tolerance=_ELEMENTWISE,
        admissible=(gelu_by_formula,),
        promises=Promises(recipes=("exp_edge",)),
    ),
    _task(
        "elu(input[M, N], alpha=1.0)",
        reference=lambda input, alpha: F.elu(input, alpha),
        description="Each element, or alpha * (exp(x) - 1) where it is negative.",
        flops="4*M*N",
        benchmark=_UNIFORM,
        attributes={"alpha": (0.5,)},
        tolerance=_ELEMENTWISE,
        admissible=(_elu_by_exp,),
    ),
    _task(
        "softplus(input[M, N], beta=1.0, threshold=20.0)",
        reference=lambda input, beta, threshold: F.softplus(input, beta, threshold),
        description="""log(1 + exp(beta * x)) / beta of each element, and x itself where
            beta * x > threshold.""",
        flops="6*M*N",
        benchmark=Benchmark(dims=_UNIFORM, distribution="normal"),
        attributes={"beta": (2.0, 0.5), "threshold": (5.0,)},
        tolerance=_ELEMENTWISE,
        admissible=(_softplus_by_log,),
    ),
    _task(
        "softmax(input[B, N], dim=-1)",
        dims=_ROWS,
        reference=lambda input, dim: torch.softmax(input, dim),
        description="exp(x) over its sum, along the last dim.",
        flops="5*B*N",
        benchmark=_SOFTMAX,
        tolerance={"float32": 1e-5, "float16": 2e-2},
        admissible=(_softmax_by_exp,),
        perf=_LARGE_ROWS,
    ),
    _task(
        "log_softmax(input[B, N], dim=-1)",
        dims=_ROWS,
        reference=lambda input, dim: torch.log_softmax(input, dim),
        description="The logarithm of the softmax along the last dim, without forming the softmax.",
        flops="5*B*N",
        benchmark=_SOFTMAX,
        perf=_LARGE_ROWS,
    ),
)
