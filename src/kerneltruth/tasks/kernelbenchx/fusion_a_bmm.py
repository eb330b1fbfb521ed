"""Batched matrix products with a normalization, GELU and dropout behind them."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks import dropped
from kerneltruth.tasks.dropped import keep, scaled
from kerneltruth.tasks.formulas import gelu_by_formula, stored
from kerneltruth.tasks.spec import (
    Benchmark,
    Dim,
    Promises,
    Role,
    Scalar,
    Sizes,
    Task,
    Variants,
    nonempty,
    task,
)

_INPUTS = "input1[B, N, M], input2[B, M, P]"
_DIMS: dict[str, Role | Dim] = {
    "B": Dim(symbol="B", role="batch", low=1),
    "N": "spatial",
    **nonempty(M="contracted", P="channel"),
}
_NORMALIZED = _DIMS | nonempty(P="reduced")
_BENCHMARK = Benchmark(dims={"B": 2, "N": 24, "M": 32, "P": 40}, distribution="normal")
_PERF = (
    {"B": 8, "N": 256, "M": 256, "P": 256},
    {"B": 16, "N": 1024, "M": 512, "P": 1024},
    {"B": 32, "N": 2048, "M": 1024, "P": 2048},
)
_APPROXIMATE: tuple[Scalar, ...] = ("tanh",)
_FLAG: tuple[Scalar, ...] = (False,)
_DROPPED = """Dropout is on when training is True: each element is then dropped with probability
    {p}, independently of all others and anew in each call, and else multiplied by
    1 / (1 - {p}); with {p} = 1 all are dropped. With training False or {p} = 0 nothing
    changes. """


def _dropout_gelu(input1: Tensor, input2: Tensor, approximate: str, keep: float) -> Tensor:
    return F.gelu(scaled(torch.bmm(input1, input2), keep), approximate=approximate)


def _normalized(input1: Tensor, input2: Tensor, eps: float, approximate: str) -> Tensor:
    product = torch.bmm(input1, input2)
    normalized = F.rms_norm(product, product.shape[-1:], eps=eps)
    return F.gelu(normalized, approximate=approximate)


def _dropout_gelu_stored(
    input1: Tensor, input2: Tensor, p: float, training: bool, inplace: bool, approximate: str
) -> Tensor:
    """The product may be infinite in float16, where its GELU is then NaN."""
    product = stored(torch.bmm(input1, input2), input1, input2)
    return gelu_by_formula(scaled(product, keep(p, training)), approximate)


def _normalized_stored(input1: Tensor, input2: Tensor, eps: float, approximate: str) -> Tensor:
    """The product may be infinite in float16, where its rows are then NaN."""
    product = stored(torch.bmm(input1, input2), input1, input2)
    normalized = product / torch.sqrt(product.square().mean(-1, True) + eps)
    return gelu_by_formula(normalized, approximate)


def _gelu_dropout(
    input1: Tensor, input2: Tensor, eps: float, approximate: str, keep: float
) -> Tensor:
    return scaled(_normalized(input1, input2, eps, approximate), keep)


def _gelu_dropout_stored(
    input1: Tensor,
    input2: Tensor,
    normalized_shape: int,
    dropout_p: float,
    eps: float,
    training: bool,
    approximate: str,
) -> Tensor:
    return scaled(_normalized_stored(input1, input2, eps, approximate), keep(dropout_p, training))


def _gelu_dropout_sub_stored(
    input1: Tensor,
    input2: Tensor,
    other: Tensor,
    normalized_shape: int,
    dropout_p: float,
    training: bool,
    approximate: str,
    eps: float,
) -> Tensor:
    normalized = _normalized_stored(input1, input2, eps, approximate)
    return scaled(normalized, keep(dropout_p, training)) - other


def _gelu_dropout_sub(
    input1: Tensor, input2: Tensor, other: Tensor, eps: float, approximate: str, keep: float
) -> Tensor:
    return scaled(_normalized(input1, input2, eps, approximate), keep) - other


def _last(P: int, _shape: str) -> Sizes | int:
    return P if _shape == "int" else (P,)


_task = partial(task, category="Fusion", benchmark=_BENCHMARK, perf=_PERF)

TASKS: tuple[Task, ...] = (
    _task(
        f"fused_bmm_dropout_gelu({_INPUTS}, p=0.5, training=True, inplace=False, "
        "approximate='none')",
        dims=_DIMS,
        attributes={
            "p": (0.0, 0.1, 1.0),
            "training": _FLAG,
            "inplace": (True,),
            "approximate": _APPROXIMATE,
        },
        reference=lambda input1, input2, p, training, inplace, approximate: _dropout_gelu(
            input1, input2, approximate, keep(p, training)
        ),
        admissible=(_dropout_gelu_stored,),
        outputs=dropped.outputs(),
        claims=dropped.claims(_dropout_gelu),
        random=True,
        description=f"""The matrix product input1[b] @ input2[b] of each batch b, then dropout,
            then GELU: out[B, N, P] in the inputs' dtype. {_DROPPED.format(p="p")} A dropped
            element of the product becomes 0, whose GELU is 0. GELU(x) is
            x * (1 + erf(x / sqrt(2))) / 2 for approximate 'none' and
            x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 for 'tanh'. inplace concerns
            intermediate results only: the inputs are never written.""",
        flops="B*N*P*(2*M + 8)",
        promises=Promises(out=True, gradients=True),
    ),
    _task(
        f"fused_bmm_rmsnorm_gelu_dropout({_INPUTS}, normalized_shape:=last, dropout_p=0.1, "
        "eps=1e-5, training=True, approximate='none', _shape='int')",
        dims=_NORMALIZED,
        where={"last": _last},
        attributes={
            "dropout_p": (0.0, 0.5, 1.0),
            "eps": (0.5,),
            "training": _FLAG,
            "approximate": _APPROXIMATE,
            "_shape": ("tuple",),
        },
        reference=lambda input1, input2, normalized_shape, dropout_p, eps, training, approximate: (
            _gelu_dropout(input1, input2, eps, approximate, keep(dropout_p, training))
        ),
        admissible=(_gelu_dropout_stored,),
        outputs=dropped.outputs("dropout_p"),
        claims=dropped.claims(_gelu_dropout, p="dropout_p"),
        random=True,
        description=f"""The matrix product of each batch, then RMS normalization of its rows, then
            GELU, then dropout: out[B, N, P] in the inputs' dtype. A row z of the product becomes
            z / sqrt(mean(z^2) + eps); there is no weight. normalized_shape is P or (P,). GELU(x)
            is x * (1 + erf(x / sqrt(2))) / 2 for approximate 'none' and
            x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 for 'tanh'.
            {_DROPPED.format(p="dropout_p")} A dropped element is 0.""",
        flops="B*N*P*(2*M + 12)",
        promises=Promises(
            out=True,
            gradients=True,
            not_tried={"normalized_shape of several dims": "it is P or (P,) in every case"},
        ),
    ),
    _task(
        f"fused_bmm_rmsnorm_gelu_dropout_sub({_INPUTS}, other[*other_shape], "
        "normalized_shape:=last, dropout_p=0.5, training=True, approximate='none', eps=1e-5, "
        "_other='same', _shape='int')",
        dims=_NORMALIZED,
        where={
            "last": _last,
            "other_shape": Variants("_other", {"same": "B, N, P", "row": "P", "column": "N, 1"}),
        },
        attributes={
            "dropout_p": (0.0, 0.1, 1.0),
            "training": _FLAG,
            "approximate": _APPROXIMATE,
            "eps": (0.5,),
            "_other": ("row", "column"),
            "_shape": ("tuple",),
        },
        reference=lambda input1, input2, other, normalized_shape, dropout_p, training, approximate, eps: (  # noqa: E501
            _gelu_dropout_sub(input1, input2, other, eps, approximate, keep(dropout_p, training))
        ),
        admissible=(_gelu_dropout_sub_stored,),
        outputs=dropped.outputs("dropout_p"),
        claims=dropped.claims(_gelu_dropout_sub, p="dropout_p"),
        random=True,
        description=f"""The matrix product of each batch, then RMS normalization of its rows, then
            GELU, then dropout, then less `other`, which broadcasts to (B, N, P): out[B, N, P] in
            the inputs' dtype. A row z of the product becomes z / sqrt(mean(z^2) + eps); there is
            no weight. normalized_shape is P or (P,). GELU(x) is x * (1 + erf(x / sqrt(2))) / 2
            for approximate 'none' and
            x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 for 'tanh'.
            {_DROPPED.format(p="dropout_p")} A dropped element is 0, so that the result there is
            -other.""",
        flops="B*N*P*(2*M + 13)",
        promises=Promises(
            out=True,
            gradients=True,
            not_tried={"normalized_shape of several dims": "it is P or (P,) in every case"},
        ),
    ),
)
