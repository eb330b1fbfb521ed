"""Fusions of a linear layer or a matrix-vector product with what follows it."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.formulas import computed_narrow, linear
from kerneltruth.tasks.rounding import cut_to_tf32
from kerneltruth.tasks.spec import Benchmark, Dim, Promises, Role, Scalar, Task, Variants, task

_LAYER: dict[str, Role | Dim] = {"M": "batch", "K": "contracted", "O": "channel"}
_NORMALIZED: dict[str, Role | Dim] = {
    "M": "batch",
    "K": "contracted",
    "O": Dim(symbol="O", role="reduced", low=1),
}
_SHAPE = Variants("_rank", {2: "M, K", 3: "M, 2, K", 1: "K"})
_RANKS: tuple[Scalar, ...] = (1, 3)
# Half precision keeps the layer's output before what follows: sums must stay within its range.
_MODERATE = (-4.0, 4.0)
# Sums of larger values may leave the range of float32 on the way to a bounded result.
_SUMMABLE = (-1024.0, 1024.0)
_BENCHMARK = Benchmark(dims={"M": 32, "K": 64, "O": 64}, distribution="normal")
_PERF = (
    {"M": 512, "K": 512, "O": 512},
    {"M": 4096, "K": 1024, "O": 1024},
    {"M": 8192, "K": 4096, "O": 4096},
)


def _layer_norm_relu_linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    normalized_shape: tuple[int, ...],
    eps: float,
    elementwise_affine: bool,
) -> Tensor:
    del elementwise_affine
    return F.layer_norm(torch.relu(linear(input, weight, bias)), normalized_shape, eps=eps)


def _layer_norm_by_steps(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    normalized_shape: tuple[int, ...],
    eps: float,
    elementwise_affine: bool,
) -> Tensor:
    del elementwise_affine
    active = linear(input, weight, bias).clamp_min(0)
    dims = tuple(range(-len(normalized_shape), 0))
    centered = active - active.mean(dims, True)
    return centered / torch.sqrt(centered.square().mean(dims, True) + eps)


def _log_softmax_linear(input: Tensor, weight: Tensor, bias: Tensor | None, dim: int) -> Tensor:
    return torch.log_softmax(linear(input, weight, bias), dim)


def _log_softmax_of_narrow_linear(
    input: Tensor, weight: Tensor, bias: Tensor | None, dim: int, dtype: str | None, *, cut: bool
) -> Tensor:
    """With the conversion that `dtype` asks for behind the layer, perhaps with factors in TF32."""
    if dtype is None:
        return _log_softmax_linear(input, weight, bias, dim)
    factors = (cut_to_tf32(input), cut_to_tf32(weight)) if cut else (input, weight)
    return torch.log_softmax(computed_narrow(linear, *factors, bias), dim)


def _softplus_linear(
    input: Tensor, weight: Tensor, bias: Tensor | None, beta: float, threshold: float
) -> Tensor:
    return F.softplus(linear(input, weight, bias), beta, threshold)


def _softplus_by_log(
    input: Tensor, weight: Tensor, bias: Tensor | None, beta: float, threshold: float
) -> Tensor:
    x = linear(input, weight, bias)
    soft = (x * beta).clamp_min(0) + torch.log(1 + torch.exp(-(x * beta).abs()))
    return torch.where(x * beta > threshold, x, soft / beta)


def _mv_sigmoid_sub(input: Tensor, vec: Tensor, other: Tensor, alpha: float) -> Tensor:
    return torch.sigmoid(input @ vec) - alpha * other


_task = partial(task, category="Fusion", benchmark=_BENCHMARK, perf=_PERF)

TASKS: tuple[Task, ...] = (
    _task(
        "fused_layer_norm_relu_linear(input[*shape], weight[O, K], bias[O]?, "
        "normalized_shape:=trailing, eps=1e-5, elementwise_affine=True, _rank=2, _trailing=1)",
        dims=_NORMALIZED,
        where={
            "trailing": lambda M, O, _trailing: (O,) if _trailing == 1 else (M, O),
            "shape": _SHAPE,
        },
        attributes={
            "eps": (1e-2, 1.0),
            "elementwise_affine": (False,),
            "_rank": (3,),
            "_trailing": (2,),
        },
        constraints=("_trailing == 1 or _rank == 2",),
        values=_MODERATE,
        reference=_layer_norm_relu_linear,
        admissible=(_layer_norm_by_steps,),
        description="""First the linear layer input @ weight.T + bias (no bias if None), with
            input[..., K] and weight[O, K]; then ReLU; then layer normalization over the trailing
            dims normalized_shape, which is (O,) or several trailing dims: less the mean, over
            the square root of the biased variance plus eps. The normalization has no weight and no
            bias, whatever elementwise_affine says. Where ReLU leaves only zeros the result is 0.
            The result has the input's dtype and leading dims, and O columns.""",
        flops="2*M*K*O + 10*M*O",
        promises=Promises(
            recipes=("common_offset",),
            not_tried={
                "normalized_shape as an int": "PyTorch's own function refuses it",
                "normalized_shape=None": "the prompt does not say what it stands for",
            },
        ),
    ),
    _task(
        "fused_log_softmax_linear(input[*shape], weight[O, K], bias[O]?, dim=-1, dtype=None, "
        "_rank=2)",
        dims=_NORMALIZED,
        where={"shape": _SHAPE},
        attributes={"dim": (0, 1), "dtype": ("torch.float64",), "_rank": (1, 3)},
        constraints=("_rank > 1 or dim < 1",),
        values=_MODERATE,
        reference=_log_softmax_linear,
        admissible=(
            partial(_log_softmax_of_narrow_linear, cut=False),
            partial(_log_softmax_of_narrow_linear, cut=True),
        ),
        description="""First the linear layer input @ weight.T + bias (no bias if None), with
            input[..., K] and weight[O, K]; then log_softmax along `dim` of its result, which is
            of shape [..., O]; `dim` may be negative and need not be the last. Large values must
            not overflow. If dtype is given, the inputs are converted to it first, and the result
            has it; or only the result of the linear layer is.""",
        flops="2*M*K*O + 6*M*O",
    ),
    _task(
        "fused_softplus_linear(input[*shape], weight[O, K], bias[O]?, beta=1, threshold=20, "
        "_rank=2)",
        dims=_LAYER,
        where={"shape": _SHAPE},
        attributes={"beta": (2.0, 0.5), "threshold": (5.0,), "_rank": _RANKS},
        extended={"_rank": _RANKS},
        reference=_softplus_linear,
        admissible=(_softplus_by_log,),
        description="""First the linear layer x = input @ weight.T + bias (no bias if None), with
            input[..., K] and weight[O, K]; then softplus log(1 + exp(beta * x)) / beta, and x
            itself where beta * x > threshold. exp must not overflow.""",
        flops="2*M*K*O + 8*M*O",
    ),
    _task(
        "fused_tanh_linear(input[*shape], weight[O, K], bias[O]?, _rank=2)",
        dims=_LAYER,
        where={"shape": _SHAPE},
        attributes={"_rank": _RANKS},
        values=_SUMMABLE,
        reference=lambda input, weight, bias: torch.tanh(linear(input, weight, bias)),
        description="""First the linear layer input @ weight.T + bias (no bias if None), with
            input[..., K] and weight[O, K]; then the hyperbolic tangent, over the whole range of
            the dtype: large values give 1 or -1, never NaN.""",
        flops="2*M*K*O + 8*M*O",
    ),
    _task(
        "fused_mv_sigmoid_sub(input[M, K], vec[K], other[*shape], alpha=1)",
        dims={"M": "channel", "K": "contracted"},
        where={"shape": Variants("_other", {"same": "M", "one": "1", "scalar": ""})},
        attributes={"alpha": (2.0, -0.5)},
        values=_SUMMABLE,
        reference=_mv_sigmoid_sub,
        admissible=(
            lambda input, vec, other, alpha: (
                1 / (1 + torch.exp(-(input * vec).sum(-1))) - alpha * other
            ),
        ),
        description="""sigmoid(input @ vec) - alpha * other, a vector of M elements: the
            matrix-vector product of input[M, K] and vec[K], its sigmoid, less alpha times
            `other`, which has M elements or one, perhaps without a dim.""",
        flops="2*M*K + 7*M",
        benchmark=Benchmark(dims={"M": 128, "K": 128}, distribution="normal"),
        perf=({"M": 1024, "K": 1024}, {"M": 8192, "K": 8192}, {"M": 16384, "K": 16384}),
        promises=Promises(numbers=("other",), out=True, gradients=True),
    ),
)
