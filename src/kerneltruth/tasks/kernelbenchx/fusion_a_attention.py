"""Attention over batches and heads."""

from __future__ import annotations

import torch
from torch import Tensor

from kerneltruth.tasks.formulas import attended, split_for_tensor_cores, with_added_mask
from kerneltruth.tasks.spec import Benchmark, Dim, Promises, Task, nonempty, task


def _hidden(scores: Tensor) -> Tensor:
    return torch.ones_like(scores, dtype=torch.bool).triu(1)


def _scores(q: Tensor, k: Tensor, causal: bool, softmax_scale: float | None) -> Tensor:
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    scores = (q @ k.mT) * scale
    return scores.masked_fill(_hidden(scores), -torch.inf) if causal else scores


def _attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, softmax_scale: float | None
) -> Tensor:
    return torch.softmax(_scores(q, k, causal, softmax_scale), -1) @ v


def _fused(q: Tensor, k: Tensor, v: Tensor, causal: bool, softmax_scale: float | None) -> Tensor:
    scores = _scores(q, k, causal, softmax_scale)
    return attended(scores, v, _hidden(scores) if causal else None, q, k, v)


def _masked(q: Tensor, k: Tensor, v: Tensor, causal: bool, softmax_scale: float | None) -> Tensor:
    if not causal:
        return _attention(q, k, v, causal, softmax_scale)
    scores = _scores(q, k, False, softmax_scale)
    return with_added_mask(scores, v, _hidden(scores))


def _split(q: Tensor, k: Tensor, v: Tensor, causal: bool, softmax_scale: float | None) -> Tensor:
    q, k, v = split_for_tensor_cores(q, k, v)
    return _attention(q, k, v, causal, softmax_scale)


TASKS: tuple[Task, ...] = (
    task(
        "attention(q[B, H, S, D], k[B, H, S, D], v[B, H, S, D], causal=False, softmax_scale=None)",
        category="Fusion",
        dims={
            **nonempty(B="batch", H="batch", S="reduced"),
            "D": Dim(symbol="D", role="contracted", low=1, high=128),
        },
        attributes={"causal": (True,), "softmax_scale": (0.125, 1.0)},
        reference=_attention,
        admissible=(_fused, _masked, _split),
        description="""softmax(q @ k.T * softmax_scale) @ v for each batch and head, the softmax
            over the keys; all three tensors have the shape (B, H, S, D) and so has the result,
            whose dtype is theirs. softmax_scale None stands for 1 / sqrt(D). With causal True,
            query i sees the keys 0 to i only. S need not be a multiple of anything and D is at
            most 128.""",
        flops="B*H*S*S*(4*D + 5)",
        benchmark=Benchmark(dims={"B": 1, "H": 2, "S": 48, "D": 32}, distribution="normal"),
        perf=(
            {"B": 1, "H": 8, "S": 512, "D": 64},
            {"B": 4, "H": 16, "S": 1024, "D": 64},
            {"B": 4, "H": 16, "S": 4096, "D": 128},
        ),
        promises=Promises(out=True),
    ),
)
