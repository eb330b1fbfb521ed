"""Losses, as torch.nn.functional defines them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.formulas import stored
from kerneltruth.tasks.spec import Benchmark, Dim, Promises, Role, Sizes, Task, Variants, task

_PLANE: dict[str, Role | Dim] = {"M": "batch", "N": "reduced"}
_CLASSES: dict[str, Role | Dim] = {
    "N": "batch",
    "C": Dim(symbol="C", role="reduced", low=1),
    "D": "spatial",
}
_SHAPE = Variants("_rank", {2: "M, N", 1: "N", 3: "M, 2, N"})


def _count(M: int, N: int, _rank: int) -> int:
    return N * (2 * M if _rank == 3 else M if _rank == 2 else 1)


def _weights(M: int, N: int, _rank: int, _weight: str) -> Sizes:
    if _weight == "row":
        return (N,)
    return (M, N) if _rank == 2 else (N,) if _rank == 1 else (M, 2, N)


_SCORES = Variants("_rank", {2: "N, C", 1: "C", 3: "N, C, D"})
_TARGETS = Variants("_rank", {2: "N", 1: "", 3: "N, D"})


def _rows(N: int, D: int, _rank: int) -> int:
    return N * D if _rank == 3 else N if _rank == 2 else 1


# PyTorch sums losses in half precision on a CPU, which overflows where a GPU's sum does not.
_LOGITS = (-100.0, 100.0)
_LOG_PROBABILITIES = (-16.0, 0.0)
_REDUCTIONS = ("sum", "none")
_BENCHMARK = {"M": 32, "N": 128}
_LARGE = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
_VOCABULARY = (
    {"N": 1024, "C": 1000, "D": 1},
    {"N": 4096, "C": 32000, "D": 1},
    {"N": 4096, "C": 128256, "D": 1},
)
_SAYS_REDUCTION = """`reduction` is "mean" (over all elements; NaN over nothing), "sum" (0 over
    nothing) or "none" (all elements); a mean or a sum is a tensor of no dims."""
_SAYS_CLASSES = """The target holds int64 class indices in [0, C); where it equals `ignore_index`
    (which may lie outside of that range) it counts neither above nor below and its loss is 0.
    `weight`, of C values that are not negative, may be None, which means ones. `reduction="mean"`
    is the sum of the weighted losses over the sum of the weights of the targets that count, NaN if
    that is 0 (what a one-dimensional input gives whose only target is ignored is left open: PyTorch
    has NaN on a CPU and 0 on a GPU); "sum" is the sum, 0 if none counts; "none" gives every loss in
    the target's shape. The classes are the only dim of a one-dimensional input (the target then has
    no dims), else dim 1: input [N, C] with target [N], or [N, C, D] with [N, D]."""


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    return losses if reduction == "none" else getattr(losses, reduction)()


def _binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    # torch's own operator raises on NaN, so the formula is spelled out.
    of_one = input.log().clamp(min=-100.0)
    of_zero = torch.log1p(-input).clamp(min=-100.0)
    losses = -(target * of_one + (1 - target) * of_zero)
    return _reduced(losses if weight is None else losses * weight, reduction)


def _kl_div(input: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    if log_target:
        losses = target.exp() * (target - input)
    else:
        losses = torch.xlogy(target, target) - target * input
    if reduction != "batchmean":
        return _reduced(losses, reduction)
    return losses.sum() / torch.tensor(losses.shape[0], dtype=losses.dtype)


def _kl_div_by_log(input: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    """The other grouping: target * (log(target) - input)."""
    if log_target:
        return _kl_div(input, target, reduction, log_target)
    log = torch.where(target > 0, target, 1).log()
    losses = target * (log - input) + 0 * target
    if reduction != "batchmean":
        return _reduced(losses, reduction)
    return losses.sum() / torch.tensor(losses.shape[0], dtype=losses.dtype)


def _mse_in_steps(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    """The squares as PyTorch stores them, in the inputs' dtype: half precision overflows soon."""
    return _reduced(stored((input - target).square(), input, target), reduction)


def _kl_div_in_steps(input: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    """The sum as PyTorch stores it before it is divided: half precision overflows soon."""
    if reduction != "batchmean":
        return _kl_div(input, target, reduction, log_target)
    total = stored(_kl_div(input, target, "sum", log_target), input, target)
    return total / torch.tensor(input.shape[0], dtype=total.dtype)


def _smooth_l1(input: Tensor, target: Tensor, beta: float, reduction: str) -> Tensor:
    gap = (input - target).abs()
    inside = 0.5 * gap * gap / beta if beta > 0 else gap
    return _reduced(torch.where(gap < beta, inside, gap - 0.5 * beta), reduction)


def _cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    return F.cross_entropy(
        input, target, weight=weight, ignore_index=ignore_index, reduction=reduction
    )


def _nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    return F.nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


TASKS: tuple[Task, ...] = (
    task(
        "binary_cross_entropy(input[*shape]: probability, target[*shape]: probability, "
        "weight[*weights]?: positive, reduction='mean', _rank=2, _weight='same')",
        category="Loss",
        dims=_PLANE,
        where={"shape": _SHAPE, "weights": _weights, "count": _count},
        attributes={"reduction": _REDUCTIONS, "_rank": (1, 3), "_weight": ("row",)},
        extended={"_weight": ("row",)},
        reference=_binary_cross_entropy,
        description=f"""-(target * log(input) + (1 - target) * log(1 - input)) of two tensors of one
            shape with values in [0, 1], each logarithm clamped from below at -100, times `weight`
            (of the same shape) if that is not None. {_SAYS_REDUCTION}""",
        flops="8*count",
        benchmark=_BENCHMARK,
        perf=_LARGE,
    ),
    task(
        "cross_entropy(input[*scores], target[*targets]: index_or(C, ignore_index), "
        "weight[C]?: probability, ignore_index=-100, reduction='mean')",
        category="Loss",
        dims=_CLASSES,
        where={"scores": _SCORES, "targets": _TARGETS, "rows": _rows},
        attributes={"ignore_index": (0, -1, 2), "reduction": _REDUCTIONS},
        extended={"_rank": (1, 3)},
        reference=_cross_entropy,
        values=_LOGITS,
        description=f"""Cross entropy of logits: minus the logarithm of the softmax over the classes
            at the target class, times the weight of that class; logits may be large, so the
            largest is subtracted first. {_SAYS_CLASSES}""",
        flops="5*C*rows",
        benchmark=Benchmark(dims={"N": 32, "C": 128, "D": 1}, distribution="normal"),
        perf=_VOCABULARY,
        promises=Promises(recipes=("large",)),
    ),
    task(
        "kl_div(input[*shape], target[*shape]: probability, reduction='batchmean', "
        "log_target=False)",
        category="Loss",
        dims=_PLANE,
        where={"shape": _SHAPE, "count": _count},
        attributes={"reduction": ("mean", "sum", "none"), "log_target": (True,)},
        reference=_kl_div,
        description="""Kullback-Leibler divergence of two tensors of one shape. The input holds
            log-probabilities. With `log_target=False` the terms are target * (log(target) - input),
            where a target of 0 adds 0; with `log_target=True` the target holds logarithms and the
            terms are exp(target) * (target - input). `reduction` is "batchmean" (the sum over the
            size of dim 0), "mean" (over all elements), "sum" or "none" (all terms); all but the
            last give a tensor of no dims, and a mean over nothing is NaN.""",
        flops="4*count",
        benchmark=_BENCHMARK,
        admissible=(_kl_div_by_log, _kl_div_in_steps),
        perf=_LARGE,
    ),
    task(
        "mse_loss(input[*shape], target[*shape], reduction='mean')",
        category="Loss",
        dims=_PLANE,
        where={"shape": _SHAPE, "count": _count},
        attributes={"reduction": _REDUCTIONS},
        reference=lambda input, target, reduction: _reduced((input - target).square(), reduction),
        admissible=(_mse_in_steps,),
        description=f"(input - target)^2 of two tensors of one shape. {_SAYS_REDUCTION}",
        flops="3*count",
        benchmark=_BENCHMARK,
        perf=_LARGE,
    ),
    task(
        "nll_loss(input[*scores], target[*targets]: index_or(C, ignore_index), "
        "weight[C]?: probability, ignore_index=-100, reduction='mean')",
        category="Loss",
        dims=_CLASSES,
        where={"scores": _SCORES, "targets": _TARGETS, "rows": _rows},
        attributes={"ignore_index": (0, -1, 2), "reduction": _REDUCTIONS},
        extended={"_rank": (1, 3)},
        reference=_nll_loss,
        values=_LOG_PROBABILITIES,
        description=f"""Negative log likelihood: minus the input (log-probabilities) at the target
            class, times the weight of that class. {_SAYS_CLASSES}""",
        flops="2*rows",
        bytes="(8 + itemsize)*rows",
        benchmark=Benchmark(dims={"N": 32, "C": 128, "D": 1}, distribution="normal"),
        perf=(
            {"N": 65536, "C": 128, "D": 1},
            {"N": 262144, "C": 512, "D": 1},
            {"N": 1048576, "C": 128, "D": 1},
        ),
    ),
    task(
        "smooth_l1_loss(input[*shape], target[*shape], beta=1.0, reduction='mean')",
        category="Loss",
        dims=_PLANE,
        where={"shape": _SHAPE, "count": _count},
        attributes={"beta": (0.25, 5.0, 0.0), "reduction": _REDUCTIONS},
        extended={"beta": (0.0,)},
        reference=_smooth_l1,
        description=f"""With d = |input - target| of two tensors of one shape: d^2 / (2 * beta)
            where d < beta, else d - beta / 2; beta is not negative and may be 0, which gives d.
            {_SAYS_REDUCTION}""",
        flops="5*count",
        benchmark=_BENCHMARK,
        perf=_LARGE,
    ),
)
