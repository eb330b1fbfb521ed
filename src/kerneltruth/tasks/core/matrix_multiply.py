"""Matrix products."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from kerneltruth.tasks.spec import Dim, Role, Task, task

_MNK: dict[str, Role | Dim] = {"M": "batch", "N": "channel", "K": "contracted"}
_BENCHMARK = {"M": 64, "N": 64, "K": 64}
_LARGE = tuple({"M": n, "N": n, "K": n} for n in (512, 2048, 4096))


def _addmm(input: Tensor, mat1: Tensor, mat2: Tensor, beta: float, alpha: float) -> Tensor:
    product = alpha * (mat1 @ mat2)
    return product if beta == 0 else beta * input + product


_task = partial(task, category="MatrixMultiply", dims=_MNK, benchmark=_BENCHMARK, perf=_LARGE)

TASKS: tuple[Task, ...] = (
    _task(
        "matmul(tensor1[M, K], tensor2[K, N])",
        reference=lambda tensor1, tensor2: tensor1 @ tensor2,
        description="The matrix product of tensor1 and tensor2.",
        flops="2*M*N*K",
        tolerance={"float32": 5e-2},
    ),
    _task(
        "addmm(input[M, N], mat1[M, K], mat2[K, N], beta=1.0, alpha=1.0)",
        reference=_addmm,
        description="""beta * input + alpha * (mat1 @ mat2); with beta 0 `input` is not read, so
            that its NaN does not spread.""",
        flops="2*M*N*K + 3*M*N",
        attributes={"beta": (0.0, 0.5), "alpha": (2.0,)},
        admissible=(
            lambda input, mat1, mat2, beta, alpha: torch.addmm(
                input, mat1, mat2, beta=beta, alpha=alpha
            ),
        ),
    ),
)
