"""Scaled dot-product attention of one head."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from kerneltruth.tasks.formulas import attended, split_for_tensor_cores, with_added_mask
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


def _scores(q: Tensor, k: Tensor, hidden: Tensor | None = None) -> Tensor:
    scores: Tensor = (q @ k.T) / q.shape[-1] ** 0.5
    return scores if hidden is None else scores.masked_fill(hidden, -torch.inf)


def _hidden(q: Tensor, k: Tensor) -> Tensor:
    """Which keys a causal query does not see."""
    return torch.ones((len(q), len(k)), dtype=torch.bool, device=q.device).triu(1)


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(_scores(q, k), -1) @ v


def _fused_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attended(_scores(q, k), v, None, q, k, v)


def _split_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _attention(*split_for_tensor_cores(q, k, v))


def _causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(_scores(q, k, _hidden(q, k)), -1) @ v


def _fused_causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    hidden = _hidden(q, k)
    return attended(_scores(q, k, hidden), v, hidden, q, k, v)


def _masked_causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return with_added_mask(_scores(q, k), v, _hidden(q, k))


def _split_causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _causal_attention(*split_for_tensor_cores(q, k, v))


_task = partial(
    task, category="Attention", dims=_DIMS, benchmark=_BENCHMARK, tolerance=_TOLERANCE, perf=_LARGE
)

TASKS: tuple[Task, ...] = (
    _task(
        "attention(q[M, D], k[N, D], v[N, D])",
        reference=_attention,
        admissible=(_fused_attention, _split_attention),
        description="softmax(q @ k.T / sqrt(D)) @ v.",
        flops="4*M*N*D + 5*M*N",
    ),
    _task(
        "causal_attention(q[M, D], k[N, D], v[N, D])",
        reference=_causal_attention,
        admissible=(
            _fused_causal_attention,
            _masked_causal_attention,
            _split_causal_attention,
        ),
        description="""softmax(q @ k.T / sqrt(D)) @ v where query i sees the keys 0 to i, also when
            M and N differ.""",
        flops=f"(4*D + 5)*({_SEEN})",
    ),
)
