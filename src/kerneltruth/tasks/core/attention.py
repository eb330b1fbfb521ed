"""Scaled dot-product attention of one head."""

from __future__ import annotations

import torch
from torch import Tensor

from kerneltruth.tasks.spec import Benchmark, Dim, Role, Task, task

_DIMS: dict[str, Role | Dim] = {
    "M": "batch",
    "N": Dim(symbol="N", role="reduced", low=1),
    "D": Dim(symbol="D", role="contracted", low=1, high=64),
}
_BENCHMARK = Benchmark(dims={"M": 64, "N": 64, "D": 32}, distribution="normal")
_LARGE = tuple({"M": n, "N": n, "D": 64} for n in (512, 2048, 4096))
# Pairs of a query and a key that it sees: query i sees i + 1 keys, or all of them.
_SEEN = "min(M, N)*(min(M, N) + 1)//2 + max(M - N, 0)*N"
_TOLERANCE = {"float32": 1e-3, "float16": 5e-2}


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q @ k.T) / q.shape[-1] ** 0.5
    return torch.softmax(scores, -1) @ v


def _causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q @ k.T) / q.shape[-1] ** 0.5
    hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(hidden, -torch.inf), -1) @ v


TASKS: tuple[Task, ...] = (
    task(
        "attention(q[M, D], k[N, D], v[N, D])",
        category="Attention",
        dims=_DIMS,
        reference=_attention,
        description="softmax(q @ k.T / sqrt(D)) @ v.",
        flops="4*M*N*D + 5*M*N",
        benchmark=_BENCHMARK,
        tolerance=_TOLERANCE,
        perf=_LARGE,
    ),
    task(
        "causal_attention(q[M, D], k[N, D], v[N, D])",
        category="Attention",
        dims=_DIMS,
        reference=_causal_attention,
        description="""softmax(q @ k.T / sqrt(D)) @ v where query i sees the keys 0 to i, also when
            M and N differ.""",
        flops=f"(4*D + 5)*({_SEEN})",
        benchmark=_BENCHMARK,
        tolerance=_TOLERANCE,
        perf=_LARGE,
    ),
)
