"""Steps of optimizers, as functions of a parameter, its gradient and the optimizer's state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from kerneltruth.tasks.spec import Benchmark, Dim, Output, Role, Task, Variants, task

_PLANE: dict[str, Role | Dim] = {"M": "batch", "N": "spatial"}
_SHAPE = Variants("_rank", {2: "M, N", 1: "M * N"})
_COUNT = "M*N"
_BENCHMARK = Benchmark(dims={"M": 16, "N": 64}, distribution="normal")
_PERF = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
# Next to larger parameters a step of usual size would be lost in rounding.
_VALUES = (-1.0, 1.0)
_SAYS = """All tensors have one shape (any) and dtype; the gradient stays as it is. The updated
    tensors are returned, in the order {order}: each one the argument itself, written in place, or a
    new tensor."""


def _adam(
    params: Sequence[Tensor],
    _gradients_of_p0: Tensor | None,
    _gradients_of_p1: Tensor | None,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> tuple[Tensor, ...]:
    return tuple(
        param if gradients is None else _adam_steps(param, gradients, lr, betas, eps, weight_decay)
        for param, gradients in zip(params, (_gradients_of_p0, _gradients_of_p1), strict=False)
    )


def _adam_steps(
    param: Tensor,
    gradients: Tensor,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> Tensor:
    mean, square = torch.zeros_like(param), torch.zeros_like(param)
    for step, gradient in enumerate(gradients, start=1):
        gradient = gradient + weight_decay * param
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        square = betas[1] * square + (1 - betas[1]) * gradient * gradient
        denominator = torch.sqrt(square / (1 - betas[1] ** step)) + eps
        param = param - lr * mean / (1 - betas[0] ** step) / denominator
    return param


def _adamw(  # noqa: PLR0913 - the entry's own parameters
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
) -> tuple[Tensor, Tensor, Tensor]:
    exp_avg = beta1 * exp_avg + (1 - beta1) * grad
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
    denominator = torch.sqrt(exp_avg_sq / (1 - beta2**step)) + eps
    update = exp_avg / (1 - beta1**step) / denominator
    return (1 - lr * weight_decay) * param - lr * update, exp_avg, exp_avg_sq


def _lion(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
) -> tuple[Tensor, Tensor]:
    direction = torch.sign(beta1 * exp_avg + (1 - beta1) * grad)
    param = (1 - lr * weight_decay) * param - lr * direction
    return param, beta2 * exp_avg + (1 - beta2) * grad


def _rmsprop(
    param: Tensor,
    grad: Tensor,
    square_avg: Tensor,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
) -> tuple[Tensor, Tensor]:
    grad = grad + weight_decay * param
    square_avg = alpha * square_avg + (1 - alpha) * grad * grad
    return param - lr * grad / (torch.sqrt(square_avg) + eps), square_avg


def _sgd(
    param: Tensor,
    grad: Tensor,
    momentum_buffer: Tensor | None,
    lr: float,
    momentum: float,
    weight_decay: float,
    dampening: float,
    nesterov: bool,
) -> tuple[Tensor, ...]:
    grad = grad + weight_decay * param
    if momentum == 0:
        return (param - lr * grad,)
    before = torch.zeros_like(param) if momentum_buffer is None else momentum_buffer
    buffer = momentum * before + (1 - dampening) * grad
    step = grad + momentum * buffer if nesterov else buffer
    return param - lr * step, buffer


_task = partial(
    task,
    category="Optimizer",
    dims=_PLANE,
    extended_dtypes=("float64",),
    values=_VALUES,
    benchmark=_BENCHMARK,
    perf=_PERF,
)

TASKS: tuple[Task, ...] = (
    _task(
        "Adam(params=[p0[M, N], p1[K]?], _gradients_of_p0[S, M, N], _gradients_of_p1[S, K]?, "
        "lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0)",
        dims={
            "S": Dim(symbol="S", role="batch", low=1, high=4),
            "M": "batch",
            "N": "spatial",
            "K": "spatial",
        },
        dtypes=("float32",),
        attributes={
            "lr": (0.1,),
            "betas": ((0.5, 0.9), (0.0, 0.5)),
            "eps": (0.1,),
            "weight_decay": (0.01, 2.0),
        },
        outputs=(Output(name="p0"), Output(name="p1", when="'p1' in present")),
        mutates={"p0": "True", "p1": "True"},
        reference=_adam,
        description="""An optimizer: `params` is a list of one or two tensors, and what is returned
            has a method `step()`, which takes no arguments. Between steps every parameter p has its
            gradient in `p.grad`, or None, which leaves p as it is. In its t-th step, t counting
            from 1, with g = p.grad + weight_decay * p (so the decay is part of the gradient) and
            averages m and v that begin as zeros: m becomes beta1 * m + (1 - beta1) * g, v becomes
            beta2 * v + (1 - beta2) * g^2, and p, written in place, becomes
            p - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps). `betas` is
            (beta1, beta2). One to four steps are taken, each with another gradient; then the
            parameters are compared.""",
        flops="14*S*(M*N + K)",
        bytes="7*itemsize*S*(M*N + K)",
        benchmark=Benchmark(dims={"S": 1, "M": 16, "N": 64, "K": 64}, distribution="normal"),
        perf=(
            {"S": 1, "M": 1024, "N": 1024, "K": 1024},
            {"S": 1, "M": 4096, "N": 4096, "K": 4096},
            {"S": 1, "M": 8192, "N": 8192, "K": 8192},
        ),
    ),
    _task(
        "AdamW(param[*shape], grad[*shape], exp_avg[*shape], exp_avg_sq[*shape]: positive, "
        "step=1, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01)",
        entry="adamw_step",
        where={"shape": _SHAPE},
        dtypes=("float32",),
        attributes={
            "step": (2, 100, 100000),
            "lr": (0.1,),
            "beta1": (0.5,),
            "beta2": (0.9,),
            "eps": (0.1,),
            "weight_decay": (0.0, 0.5),
        },
        outputs=(Output(name="param"), Output(name="exp_avg"), Output(name="exp_avg_sq")),
        may_overwrite={"param": "True", "exp_avg": "True", "exp_avg_sq": "True"},
        reference=_adamw,
        description=f"""One step of AdamW, `step` counting from 1. exp_avg becomes
            beta1 * exp_avg + (1 - beta1) * grad; exp_avg_sq becomes
            beta2 * exp_avg_sq + (1 - beta2) * grad^2; param becomes
            param * (1 - lr * weight_decay) - lr * m / (sqrt(v) + eps) with
            m = exp_avg / (1 - beta1^step) and v = exp_avg_sq / (1 - beta2^step), both of the new
            averages. {_SAYS.format(order="param, exp_avg, exp_avg_sq")}""",
        flops=f"16*{_COUNT}",
        bytes=f"7*itemsize*{_COUNT}",
    ),
    _task(
        "Lion(param[*shape], grad[*shape], exp_avg[*shape], lr=1e-4, beta1=0.9, beta2=0.99, "
        "weight_decay=0.0)",
        entry="lion_step",
        where={"shape": _SHAPE},
        dtypes=("float32",),
        attributes={"lr": (0.05,), "beta1": (0.5,), "beta2": (0.5,), "weight_decay": (0.1, 2.0)},
        outputs=(Output(name="param"), Output(name="exp_avg")),
        may_overwrite={"param": "True", "exp_avg": "True"},
        reference=_lion,
        description=f"""One step of Lion. With c = beta1 * exp_avg + (1 - beta1) * grad, of the old
            average, param becomes param * (1 - lr * weight_decay) - lr * sign(c), where sign(0) is
            0; exp_avg becomes beta2 * exp_avg + (1 - beta2) * grad.
            {_SAYS.format(order="param, exp_avg")}""",
        flops=f"10*{_COUNT}",
        bytes=f"5*itemsize*{_COUNT}",
    ),
    _task(
        "RMSProp(param[*shape], grad[*shape], square_avg[*shape]: positive, lr=1e-2, alpha=0.99, "
        "eps=1e-8, weight_decay=0.0)",
        entry="rmsprop_step",
        where={"shape": _SHAPE},
        dtypes=("float32",),
        attributes={"lr": (0.3,), "alpha": (0.5,), "eps": (0.5,), "weight_decay": (0.1, 2.0)},
        outputs=(Output(name="param"), Output(name="square_avg")),
        may_overwrite={"param": "True", "square_avg": "True"},
        reference=_rmsprop,
        description=f"""One step of RMSProp without momentum and not centered. With
            g = grad + weight_decay * param, square_avg becomes
            alpha * square_avg + (1 - alpha) * g^2, and param becomes
            param - lr * g / (sqrt(square_avg) + eps), of the new average.
            {_SAYS.format(order="param, square_avg")}""",
        flops=f"10*{_COUNT}",
        bytes=f"5*itemsize*{_COUNT}",
    ),
    _task(
        "SGD(param[*shape], grad[*shape], momentum_buffer[*shape]?, lr=0.1, momentum=0.9, "
        "weight_decay=0.0, dampening=0.0, nesterov=False)",
        entry="sgd_step",
        where={"shape": _SHAPE},
        attributes={
            "lr": (0.5,),
            "momentum": (0.0, 0.5),
            "weight_decay": (0.1, 2.0),
            "dampening": (0.5,),
            "nesterov": (True,),
        },
        outputs=(Output(name="param"), Output(name="momentum_buffer", when="momentum > 0")),
        may_overwrite={"param": "True", "momentum_buffer": "momentum > 0"},
        reference=_sgd,
        description=f"""One step of SGD. Let g = grad + weight_decay * param. With momentum above 0,
            the buffer becomes momentum * buffer + (1 - dampening) * g, a buffer that is None
            counting as zeros, and d is the new buffer, or with `nesterov=True`
            g + momentum * (new buffer). With momentum 0, d is g, and the buffer is neither read nor
            returned (a None in its place is allowed). param becomes param - lr * d.
            {_SAYS.format(order="param, momentum_buffer")}""",
        flops=f"8*{_COUNT}",
        bytes=f"5*itemsize*{_COUNT}",
    ),
)
