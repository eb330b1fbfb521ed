"""Losses with something before or beside them."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.formulas import fits_half
from kerneltruth.tasks.spec import (
    Benchmark,
    Output,
    Promises,
    Scalar,
    Task,
    nonempty,
    task,
)

_ROWS = nonempty(N="batch", C="reduced")
_REDUCTION: tuple[Scalar, ...] = ("sum", "none")
_BENCHMARK = Benchmark(dims={"N": 32, "C": 128}, distribution="normal")
_PERF = ({"N": 1024, "C": 1024}, {"N": 4096, "C": 8192}, {"N": 8192, "C": 16384})
_REDUCED = """reduction 'mean' gives their mean, 'sum' their sum, 'none' the N of them; in the
    input's dtype. """
_CROSS_ENTROPY = """The loss of row n with class t = {0}[n] is -w[t] * log p[n, t], where w is
    weight[C], or 1 if it is None; with label_smoothing s it is (1 - s) times that plus
    s / C times the sum of -w[c] * log p[n, c] over all classes c. Rows whose class is
    ignore_index, which need not be a class, lose 0. reduction 'none' gives the N losses, 'sum'
    their sum, and 'mean' divides that by the sum of w[t] over the rows that are not ignored (NaN
    if all are). """
_ONLY_INDICES = "a tensor of a task has one dtype in all of its cases"
_TARGET_LOSS = _CROSS_ENTROPY.format("target")


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


def _cosine_embedding(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str
) -> Tensor:
    one, other = F.normalize(input1, dim=1), F.normalize(input2, dim=1)
    return F.cosine_embedding_loss(one, other, target.sign(), margin=margin, reduction=reduction)


def _cosine_embedding_by_steps(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str
) -> Tensor:
    """From the cosine of the inputs themselves, which is a few roundings of 1 off."""
    # 1e-12 is 0 in float16, so that PyTorch gives NaN for vectors of zeros there.
    least = 0.0 if fits_half(input1, input2) else 1e-12
    norms = [torch.linalg.vector_norm(x, dim=1).clamp_min(least) for x in (input1, input2)]
    cosine = (input1 * input2).sum(1) / norms[0] / norms[1]
    lost = 4 * torch.finfo(input1.dtype).eps
    apart = (cosine - margin + lost).clamp_min(0)
    return _reduced(torch.where(target > 0, 1 - cosine + lost, apart), reduction)


def _cross_entropy_log_softmax(
    input: Tensor,
    target: Tensor,
    dim: int,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    return F.cross_entropy(
        torch.log_softmax(input, dim),
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _cross_entropy_softmax_layernorm(
    logits: Tensor,
    targets: Tensor,
    normalized_shape: int,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    eps: float,
) -> tuple[Tensor, Tensor]:
    loss = _cross_entropy_log_softmax(
        logits, targets, 1, weight, ignore_index, reduction, label_smoothing
    )
    return loss, F.layer_norm(torch.softmax(logits, -1), (normalized_shape,), eps=eps)


_task = partial(task, category="Fusion", dims=_ROWS, benchmark=_BENCHMARK, perf=_PERF)

TASKS: tuple[Task, ...] = (
    _task(
        "fused_cosine_embedding_loss_with_normalization(input1[N, C], input2[N, C], "
        "target[N]: sign, margin=0, reduction='mean')",
        attributes={"margin": (0.5, -0.5), "reduction": _REDUCTION},
        reference=_cosine_embedding,
        admissible=(_cosine_embedding_by_steps,),
        description=f"""The rows of both inputs are divided by their Euclidean norms (by 1e-12 if
            that is larger), then the cosine embedding loss is taken: with the cosine c of rows n
            of both and target[n], which is 1 or -1, the loss of the row is 1 - c for 1 and
            max(0, c - margin) for -1; {_REDUCED} The cosine with a row of zeros is 0.""",
        flops="8*N*C",
    ),
    _task(
        "fused_cross_entropy_log_softmax(input[N, C], target[N]: index_or(C, ignore_index), "
        "dim=1, weight[C]?: positive, ignore_index=-100, reduction='mean', label_smoothing=0.0)",
        attributes={
            "dim": (-1, 0),
            "ignore_index": (0,),
            "reduction": _REDUCTION,
            "label_smoothing": (0.1,),
        },
        reference=_cross_entropy_log_softmax,
        promises=Promises(not_tried={"target as class probabilities": _ONLY_INDICES}),
        description=f"""The log-softmax of input[N, C] along dim, then the cross entropy of the
            result over its classes (always dim 1), where log p is the log-softmax along dim 1: for
            dim 1 the two are one, for dim 0 both are taken in turn. {_TARGET_LOSS}
            The result has the input's dtype.""",
        flops="6*N*C",
    ),
    _task(
        "fused_cross_entropy_softmax_layernorm(logits[N, C], "
        "targets[N]: index_or(C, ignore_index), normalized_shape:=C, weight[C]?: positive, "
        "ignore_index=-100, reduction='mean', label_smoothing=0.0, eps=1e-5)",
        attributes={
            "ignore_index": (0,),
            "reduction": _REDUCTION,
            "label_smoothing": (0.1,),
            "eps": (1e-2,),
        },
        reference=_cross_entropy_softmax_layernorm,
        outputs=(Output(name="loss"), Output(name="output")),
        promises=Promises(
            gradients=True,
            not_tried={
                "out": "it takes the second of two results, and a call is given one tensor for one",
                "targets as class probabilities": _ONLY_INDICES,
                "logits[N, C, *]": "the prompt does not say along which dim the softmax is then",
            },
        ),
        description=f"""Two results in the dtype of logits[N, C]. First the cross entropy, p being
            the softmax of each row. {_CROSS_ENTROPY.format("targets")} Second p itself, layer
            normalized: each row of it less its mean, over the square root of its biased variance
            plus eps, without weight or bias. normalized_shape is the int C.""",
        flops="14*N*C",
    ),
)
