"""Activations: elementwise operators on tensors of any rank, and one fused with a product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.formulas import gelu_by_formula
from kerneltruth.tasks.spec import Benchmark, Dim, Output, Promises, Role, Task, Variants, task

_PLANE: dict[str, Role | Dim] = {"M": "batch", "N": "spatial"}
_SHAPE = Variants("_rank", {2: "M, N", 1: "M * N", 3: "M, 2, N", 4: "2, M, 3, N"})


def _count(M: int, N: int, _rank: int) -> int:
    return M * N * (6 if _rank == 4 else 2 if _rank == 3 else 1)


_UNIFORM = {"M": 16, "N": 256}
_NORMAL = Benchmark(dims=_UNIFORM, distribution="normal")
_LARGE = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
_GELU_FROM_EXACT = 8


def _gelu(input: Tensor, approximate: str) -> Tensor:
    return F.gelu(input, approximate=approximate)


def _selu_by_exp(input: Tensor, inplace: bool) -> Tensor:
    del inplace
    below = 1.6732632423543772 * (torch.exp(input) - 1)
    return 1.0507009873554805 * torch.where(input > 0, input, below)


def _gelu_int8(input: Tensor, approximate: str) -> Tensor:
    # Not float64: there GELU of 6, 7 and 8 is a little below them, which float32 cannot tell.
    return F.gelu(input.to(torch.float32), approximate=approximate).trunc().to(input.dtype)


def _accept_gelu_int8(
    inputs: Mapping[str, Any], outputs: Sequence[Any], reference: Sequence[Any]
) -> Tensor:
    """What some float32 computation, truncated, gives.

    GELU of 6 is 6e-9 below 6, where float32 computations differ; from 8 on it is the input itself.
    """
    x: Tensor = inputs["input"].to(torch.float64)
    # With a tanh the values differ by less than what decides between two integers, except at 5.
    exact = torch.stack([F.gelu(x), F.gelu(x, approximate="tanh")])
    small = x.abs() < _GELU_FROM_EXACT
    exact = torch.where(small, exact, exact.round())
    slack = torch.where(small, x.abs() * 2.0**-22, 0.0)
    got: Tensor = outputs[0].to(torch.float64)
    low, high = (exact - slack).trunc().amin(0), (exact + slack).trunc().amax(0)
    del reference
    return (got >= low) & (got <= high)


def _combined(input: Tensor, weight1: Tensor, weight2: Tensor, bias: Tensor) -> Tensor:
    return torch.tanh(torch.sigmoid(torch.matmul(input, weight1))) * weight2 + bias


def _gelu_of(name: str, dtypes: tuple[str, ...], says: str) -> Task:
    return task(
        f"{name}(input[*shape], approximate='none')",
        category="Activation",
        dims=_PLANE,
        where={"shape": _SHAPE, "count": _count},
        reference=_gelu,
        description=f"""x * Phi(x) of each element of a tensor of any shape, Phi being the normal
            distribution function, that is 0.5 * x * (1 + erf(x / sqrt(2))). With
            `approximate="tanh"` it is 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
            {says} The result has the input's shape and dtype. NaN stays NaN, and minus infinity
            gives NaN, as the formula does.""",
        flops="8*count",
        benchmark=_UNIFORM,
        dtypes=dtypes,
        attributes={"approximate": ("tanh",)},
        admissible=(gelu_by_formula,),
        perf=_LARGE,
        promises=Promises(recipes=("exp_edge",)),
    )


TASKS: tuple[Task, ...] = (
    task(
        "relu(input[*shape], inplace=False)",
        category="Activation",
        dims=_PLANE,
        where={"shape": _SHAPE, "count": _count},
        reference=lambda input, inplace: torch.relu(input),
        description="""The larger of each element and 0, for a tensor of any shape; NaN stays NaN.
            With `inplace=True` the input may be overwritten with the result and returned.""",
        flops="count",
        benchmark=_UNIFORM,
        extended_dtypes=("float64", "int32"),
        attributes={"inplace": (True,)},
        may_overwrite={"input": "inplace"},
        perf=_LARGE,
    ),
    task(
        "leaky_relu(input[*shape], negative_slope=0.01, inplace=False)",
        category="Activation",
        dims=_PLANE,
        where={"shape": _SHAPE, "count": _count},
        reference=lambda input, negative_slope, inplace: F.leaky_relu(input, negative_slope),
        description="""Each element of a tensor of any shape, times `negative_slope` (any number,
            also 0 or above 1) where it is negative; NaN stays NaN. With `inplace=True` the input
            may be overwritten with the result and returned.""",
        flops="2*count",
        benchmark=_UNIFORM,
        extended_dtypes=("float64",),
        attributes={"negative_slope": (0.2, 0.0, 1.5), "inplace": (True,)},
        may_overwrite={"input": "inplace"},
        perf=_LARGE,
    ),
    task(
        "selu(input[*shape], inplace=False)",
        category="Activation",
        dims=_PLANE,
        where={"shape": _SHAPE, "count": _count},
        reference=lambda input, inplace: F.selu(input),
        description="""scale * x for x > 0 and scale * alpha * (exp(x) - 1) otherwise, of each
            element of a tensor of any shape, with alpha = 1.6732632423543772848170429916717 and
            scale = 1.0507009873554804934193349852946; NaN stays NaN. With `inplace=True` the input
            may be overwritten with the result and returned.""",
        flops="5*count",
        benchmark=_NORMAL,
        extended_dtypes=("float64",),
        attributes={"inplace": (True,)},
        may_overwrite={"input": "inplace"},
        admissible=(_selu_by_exp,),
        perf=_LARGE,
    ),
    task(
        "sigmoid(input[*shape])",
        category="Activation",
        dims=_PLANE,
        where={"shape": _SHAPE, "count": _count},
        reference=lambda input: torch.sigmoid(input),
        description="""1 / (1 + exp(-x)) of each element of a tensor of any shape, over the whole
            range of the dtype: 0 and 1 far out, also at the infinities; NaN stays NaN.""",
        flops="4*count",
        benchmark=_NORMAL,
        extended_dtypes=("float64",),
        admissible=(lambda input: 1 / (1 + torch.exp(-input)),),
        perf=_LARGE,
        promises=Promises(out=True),
    ),
    task(
        "tanh(input_tensor[*shape])",
        category="Activation",
        dims=_PLANE,
        where={"shape": _SHAPE, "count": _count},
        reference=lambda input_tensor: torch.tanh(input_tensor),
        description="""The hyperbolic tangent of each element of a tensor of any shape, over the
            whole range of the dtype: -1 and 1 far out, also at the infinities; NaN stays NaN.""",
        flops="6*count",
        benchmark=_NORMAL,
        extended_dtypes=("float64",),
        perf=_LARGE,
        promises=Promises(out=True),
    ),
    _gelu_of("gelu", ("float32", "float16", "bfloat16"), ""),
    _gelu_of("gelu_bf16", ("bfloat16",), "The input is bfloat16."),
    _gelu_of("gelu_fp16", ("float16",), "The input is float16."),
    task(
        "gelu_int8(input[*shape], approximate='none')",
        category="Activation",
        dims=_PLANE,
        where={"shape": _SHAPE, "count": _count},
        dtypes=("int8",),
        reference=_gelu_int8,
        outputs=(Output(compare="accept", accept=_accept_gelu_int8),),
        description="""GELU of int8 values: each element of an int8 tensor of any shape is taken as
            the number that it is (there is no scale), GELU is computed in float32 or wider, and the
            result is converted back to int8 as a cast does, toward zero: GELU(4) = 3.99987 gives 3,
            GELU(-1) = -0.16 gives 0. With `approximate="tanh"` GELU is
            0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), which differs after the cast
            at most where float32 cannot tell GELU(x) from x (5, 6 and 7: there x and x - 1 are both
            right).""",
        flops="8*count",
        benchmark=_UNIFORM,
        attributes={"approximate": ("tanh",)},
        perf=_LARGE,
        promises=Promises(recipes=("exp_edge",)),
    ),
    task(
        "combined_activation(input[*input_shape], weight1[K, N], weight2[*weight2_shape], "
        "bias[*bias_shape])",
        category="Activation",
        dims={"M": "batch", "K": "contracted", "N": "spatial"},
        where={
            "input_shape": Variants("_rank", {2: "M, K", 3: "2, M, K"}),
            "weight2_shape": Variants("_weight2", {"same": "M, N", "row": "N", "column": "M, 1"}),
            "bias_shape": Variants("_bias", {"same": "M, N", "row": "N", "column": "M, 1"}),
        },
        reference=_combined,
        description="""tanh(sigmoid(input @ weight1)) * weight2 + bias, for input[..., M, K] and
            weight1[K, N]; weight2 and bias broadcast to the product [..., M, N]. The input is a
            matrix, or a batch of matrices. K may be 0, where the product is 0.""",
        flops="(2*M*N*K + 12*M*N)*(_rank - 1)",
        benchmark={"M": 32, "K": 32, "N": 32},
        # Beyond that the sigmoid is 0 or 1 nearly everywhere, and the product hardly matters.
        values=(-2.0, 2.0),
        perf=(
            {"M": 256, "K": 128, "N": 192},
            {"M": 2048, "K": 2048, "N": 2048},
            {"M": 4096, "K": 4096, "N": 4096},
        ),
        promises=Promises(out=True, gradients=True),
    ),
)
