"""Losses, as torch.nn.functional defines them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from kerneltruth.tasks.formulas import stored
from kerneltruth.tasks.spec import Dim, Role, Task, task

_ROWS: dict[str, Role] = {"M": "batch", "N": "reduced"}
_LARGE = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 2048}, {"M": 8192, "N": 8192})


def _reduced(losses: torch.Tensor, reduction: str) -> torch.Tensor:
    reduce: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "none": lambda t: t,
        "mean": torch.mean,
        "sum": torch.sum,
    }
    return reduce[reduction](losses)


def _cross_entropy(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    ignore_index: int,
    label_smoothing: float,
) -> torch.Tensor:
    return F.cross_entropy(
        input,
        target,
        weight=weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )


def _kl_div_in_steps(input: torch.Tensor, target: torch.Tensor, reduction: str) -> torch.Tensor:
    """The sum as PyTorch stores it before it is divided: half precision overflows soon."""
    if reduction != "batchmean":
        return F.kl_div(input, target, reduction=reduction)
    return stored(F.kl_div(input, target, reduction="sum"), input, target) / input.shape[0]


def _binary_cross_entropy(
    input: torch.Tensor, target: torch.Tensor, reduction: str
) -> torch.Tensor:
    # torch's own operator raises on NaN, so the formula is spelled out.
    of_one = input.log().clamp(min=-100.0)
    of_zero = torch.log1p(-input).clamp(min=-100.0)
    return _reduced(-(target * of_one + (1 - target) * of_zero), reduction)


def _mse_in_steps(input: torch.Tensor, target: torch.Tensor, reduction: str) -> torch.Tensor:
    """The squares as PyTorch stores them, in the inputs' dtype: half precision overflows soon."""
    return _reduced(stored((input - target).square(), input, target), reduction)


def _smooth_l1_loss(
    input: torch.Tensor, target: torch.Tensor, beta: float, reduction: str
) -> torch.Tensor:
    return F.smooth_l1_loss(input, target, beta=beta, reduction=reduction)


TASKS: tuple[Task, ...] = (
    task(
        "cross_entropy(input[N, C], target[N]: index(C), weight[C]?: positive, ignore_index=-100, "
        "label_smoothing=0.0)",
        category="Loss",
        dims={"N": "batch", "C": Dim(symbol="C", role="reduced", low=1)},
        attributes={"ignore_index": (0,), "label_smoothing": (0.1,)},
        reference=_cross_entropy,
        description="""Cross entropy of logits input[N, C] and class indices target[N], a scalar:
            the mean over rows weighted by weight[target] (1 if weight is None). Rows whose target
            is ignore_index count neither above nor below; if none is left the result is NaN.
            label_smoothing mixes the target with the uniform distribution, as in torch.""",
        flops="5*N*C",
        benchmark={"N": 32, "C": 128},
        perf=({"N": 1024, "C": 1000}, {"N": 512, "C": 32000}, {"N": 4096, "C": 32000}),
    ),
    task(
        "kl_div(input[N, C], target[N, C]: probability, reduction='batchmean')",
        category="Loss",
        dims={"N": Dim(symbol="N", role="batch", low=1), "C": "reduced"},
        attributes={"reduction": ("sum", "none")},
        reference=lambda input, target, reduction: F.kl_div(input, target, reduction=reduction),
        admissible=(_kl_div_in_steps,),
        description="""Sum of target * (log(target) - input), where a target of 0 adds 0 to the
            first part; input holds log-probabilities. `batchmean` divides the sum by N, `none`
            returns the terms.""",
        flops="4*N*C",
        benchmark={"N": 32, "C": 128},
        perf=({"N": 1024, "C": 1024}, {"N": 4096, "C": 2048}, {"N": 8192, "C": 8192}),
    ),
    task(
        "binary_cross_entropy(input[M, N]: probability, target[M, N]: probability, "
        "reduction='mean')",
        category="Loss",
        dims=_ROWS,
        attributes={"reduction": ("sum", "none")},
        reference=_binary_cross_entropy,
        description="""-(target * log(input) + (1 - target) * log(1 - input)), each logarithm
            clamped from below at -100; the mean, the sum, or with `none` all elements.""",
        flops="8*M*N",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE,
    ),
    task(
        "mse_loss(input[M, N], target[M, N], reduction='mean')",
        category="Loss",
        dims=_ROWS,
        attributes={"reduction": ("sum", "none")},
        reference=lambda input, target, reduction: _reduced((input - target).square(), reduction),
        admissible=(_mse_in_steps,),
        description="(input - target)^2: the mean, the sum, or with `none` all elements.",
        flops="3*M*N",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE,
    ),
    task(
        "smooth_l1_loss(input[M, N], target[M, N], beta=1.0, reduction='mean')",
        category="Loss",
        dims=_ROWS,
        attributes={"beta": (0.25, 0.0), "reduction": ("sum", "none")},
        reference=_smooth_l1_loss,
        description="""With d = |input - target|: d^2 / (2 beta) where d < beta, else d - beta / 2;
            beta may be 0. The mean, the sum, or with `none` all elements.""",
        flops="5*M*N",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE,
    ),
)
