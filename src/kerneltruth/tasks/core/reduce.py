"""Reductions of the last dim."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from kerneltruth.tasks.spec import Benchmark, Dim, Output, Role, Task, task

_ROWS: dict[str, Role | Dim] = {"M": "batch", "N": "reduced"}
_NONEMPTY: dict[str, Role | Dim] = {"M": "batch", "N": Dim(symbol="N", role="reduced", low=1)}
_UNIFORM = {"M": 8, "N": 256}
_NORMAL = Benchmark(dims=_UNIFORM, distribution="normal")
_LARGE = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})


def _std(input: Tensor, dim: int, correction: int, keepdim: bool) -> Tensor:
    """The standard deviation in two passes; NaN where no degree of freedom is left."""
    squares = (input - input.mean(dim, True)).square().sum(dim, keepdim)
    return torch.sqrt(squares / max(input.shape[dim] - correction, 0))


def _logsumexp_by_steps(input: Tensor, dim: int, keepdim: bool) -> Tensor:
    if input.shape[dim] == 0:
        return input.sum(dim, keepdim) - torch.inf
    top = input.amax(dim, True)
    top = torch.where(top.isinf(), 0, top)
    total = torch.log(torch.exp(input - top).sum(dim, True)) + top
    return total if keepdim else total.squeeze(dim)


_task = partial(task, category="Reduce", perf=_LARGE, attributes={"keepdim": (True,)})

TASKS: tuple[Task, ...] = (
    _task(
        "sum(input[M, N], dim=-1, keepdim=False)",
        dims=_ROWS,
        reference=lambda input, dim, keepdim: input.sum(dim, keepdim),
        description="The sum along the last dim; 0 over nothing.",
        flops="M*N",
        benchmark=_UNIFORM,
    ),
    _task(
        "mean(input[M, N], dim=-1, keepdim=False)",
        dims=_ROWS,
        reference=lambda input, dim, keepdim: input.mean(dim, keepdim),
        description="The mean along the last dim; NaN over nothing.",
        flops="M*N",
        benchmark=_UNIFORM,
    ),
    _task(
        "std(input[M, N], dim=-1, correction=1, keepdim=False)",
        dims=_ROWS,
        reference=_std,
        description="""The standard deviation along the last dim, with N - correction degrees of
            freedom; NaN where none is left.""",
        flops="4*M*N",
        benchmark=_NORMAL,
        attributes={"correction": (0,), "keepdim": (True,)},
    ),
    _task(
        "row_max(input[M, N], dim=-1, keepdim=False)",
        dims=_NONEMPTY,
        reference=lambda input, dim, keepdim: input.amax(dim, keepdim),
        description="The maximum along the last dim; NaN where there is one.",
        flops="M*N",
        benchmark=_UNIFORM,
    ),
    _task(
        "argmax(input_tensor[M, N], dim=-1, keepdim=False)",
        dims=_NONEMPTY,
        reference=lambda input_tensor, dim, keepdim: input_tensor.argmax(dim, keepdim),
        description="""The index of the maximum along the last dim: the first one where there are
            several, and the first NaN where there is one.""",
        flops="M*N",
        benchmark=_UNIFORM,
        outputs=(Output(dtype="int64", compare="exact"),),
    ),
    _task(
        "logsumexp(input[M, N], dim=-1, keepdim=False)",
        dims=_ROWS,
        reference=lambda input, dim, keepdim: torch.logsumexp(input, dim, keepdim),
        description="The logarithm of the sum of exponentials along the last dim.",
        flops="4*M*N",
        benchmark=_NORMAL,
        admissible=(_logsumexp_by_steps,),
    ),
)
