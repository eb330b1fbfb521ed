"""Fusions that work element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks import dropped
from kerneltruth.tasks.dropped import keep, scaled
from kerneltruth.tasks.formulas import gelu_by_formula
from kerneltruth.tasks.spec import (
    Benchmark,
    Dim,
    Output,
    Promises,
    Role,
    Sizes,
    Task,
    Variants,
    task,
)

_PLANE: dict[str, Role | Dim] = {"M": "batch", "N": "spatial"}
_BENCHMARK = Benchmark(dims={"M": 16, "N": 256}, distribution="normal")
_PERF = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
_SHAPE = Variants("_rank", {2: "M, N", 1: "M * N", 3: "M, 2, N"})


def _add_gelu(input: Tensor, other: Tensor, alpha: float, approximate: str) -> Tensor:
    return F.gelu(input + alpha * other, approximate=approximate)


def _add_gelu_by_formula(input: Tensor, other: Tensor, alpha: float, approximate: str) -> Tensor:
    return gelu_by_formula(input + alpha * other, approximate)


def _cos_signbit(input: Tensor) -> tuple[Tensor, Tensor]:
    cosine = torch.cos(input)
    return cosine, torch.signbit(cosine)


def _accept_signs(
    inputs: Mapping[str, Any], outputs: Sequence[Any], reference: Sequence[Any]
) -> Tensor:
    """The sign of the true cosine, or either where rounding may take it beyond 0; any of a NaN."""
    true = reference[0].double()
    size = torch.nan_to_num(inputs["input"].double().abs(), posinf=0.0)
    doubt = 4 * torch.finfo(outputs[0].dtype).eps + size * 2.0**-21
    either = (true.abs() <= doubt) | true.isnan()
    accepted: Tensor = either | (outputs[1] == (true < 0))
    return accepted


def _hardshrink(input: Tensor, lambd: float, keep: float) -> Tensor:
    return F.hardshrink(scaled(input, keep), lambd)


def _hstack_div(tensors: Sequence[Tensor], divisor: Tensor, rounding_mode: str | None) -> Tensor:
    joined = torch.hstack(tuple(tensors))
    if rounding_mode is None and not joined.is_floating_point():
        return joined.double() / divisor
    return torch.div(joined, divisor, rounding_mode=rounding_mode)


def _fused_add_gelu_other(M: int, N: int, _rank: int, _other: str) -> Sizes:
    if _other == "same":
        return (M, N) if _rank == 2 else (M * N,) if _rank == 1 else (M, 2, N)
    if _other == "row":
        return (N,)
    if _other == "column":
        return (M, 1)
    return ()


def _fused_hstack_div_divisor(M: int, K: int, L: int, N: int, _rank: int, _other: str) -> Sizes:
    if _other == "same":
        return (M, K + L + N) if _rank == 2 else (K + L + N,) if _rank == 1 else (M, K + L + N, 2)
    if _other == "row":
        return (K + L + N,)
    if _other == "column":
        return (M, 1)
    return ()


_task = partial(task, category="Fusion", dims=_PLANE, benchmark=_BENCHMARK, perf=_PERF)

TASKS: tuple[Task, ...] = (
    _task(
        "fused_add_gelu(input[*input_shape], other[*other_shape], alpha=1, approximate='none', "
        "_rank=2, _other='same')",
        where={
            "input_shape": _SHAPE,
            "other_shape": _fused_add_gelu_other,
        },
        attributes={
            "alpha": (0.5, -2),
            "approximate": ("tanh",),
            "_rank": (1, 3),
            "_other": ("row", "column", "scalar"),
        },
        promises=Promises(numbers=("other",), out=True),
        extended={"_other": ("row", "column", "scalar")},
        constraints=("_other in ('same', 'scalar') or _rank == 2",),
        reference=_add_gelu,
        admissible=(_add_gelu_by_formula,),
        description="""GELU of input + alpha * other: x * (1 + erf(x / sqrt(2))) / 2 for
            approximate 'none' and x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 for
            'tanh'. The input has any rank; other has its shape or broadcasts to it. The result
            has the input's dtype.""",
        flops="10*M*N",
    ),
    _task(
        "fused_cos_signbit(input[*shape])",
        where={"shape": _SHAPE},
        reference=_cos_signbit,
        outputs=(
            Output(name="cos"),
            Output(name="signbit", dtype="bool", compare="accept", accept=_accept_signs),
        ),
        description="""Two results of the input's shape, any rank: the cosine of each element
            (radians) in the input's dtype, and a bool that is True where the cosine is negative.
            The cosine of an infinity or NaN is NaN, whose sign is not defined. Large arguments are
            reduced as exactly as those near 0.""",
        flops="10*M*N",
        promises=Promises(recipes=("signed_zeros",)),
    ),
    _task(
        "fused_hardshrink_dropout(input[*shape], p=0.5, training=True, inplace=False, lambd=0.5)",
        where={"shape": _SHAPE},
        attributes={
            "p": (0.0, 0.1, 1.0),
            "training": (False,),
            "inplace": (True,),
            "lambd": (0.0, 2.0),
        },
        reference=lambda input, p, training, inplace, lambd: _hardshrink(
            input, lambd, keep(p, training)
        ),
        outputs=dropped.outputs(),
        claims=dropped.claims(_hardshrink),
        random=True,
        may_overwrite={"input": "inplace"},
        description="""First dropout, then hard shrinkage. When training is True, each element
            becomes 0 with probability p, independently of all others and anew in each call, and
            else is multiplied by 1 / (1 - p); with p = 1 all become 0. With training False or
            p = 0 nothing is dropped. Then an element x stays if x > lambd or x < -lambd and
            becomes 0 if not; NaN stays NaN unless it is dropped. With inplace True the input may
            be overwritten by what dropout makes of it. Any rank; the result has the input's shape
            and dtype.""",
        flops="4*M*N",
    ),
    _task(
        "fused_hstack_div(tensors=[a[*a_shape], b[*b_shape], c[*c_shape]], "
        "divisor[*divisor_shape], rounding_mode=None, _rank=2, _other='same')",
        dims={"M": "batch", "K": "channel", "L": "channel", "N": "channel"},
        where={
            "a_shape": Variants("_rank", {2: "M, K", 1: "K", 3: "M, K, 2"}),
            "b_shape": Variants("_rank", {2: "M, L", 1: "L", 3: "M, L, 2"}),
            "c_shape": Variants("_rank", {2: "M, N", 1: "N", 3: "M, N, 2"}),
            "divisor_shape": _fused_hstack_div_divisor,
        },
        attributes={
            "rounding_mode": ("trunc", "floor"),
            "_rank": (1, 3),
            "_other": ("row", "column", "scalar"),
        },
        promises=Promises(
            numbers=("divisor",),
            out=True,
            gradients=True,
            dtypes=("float32", "int32"),
            never={"int32": "_call == 'backward'"},
            not_tried={"gradients of integers": "integers have none"},
        ),
        constraints=("_other in ('same', 'scalar') or _rank == 2", "_rank != 1 or M == 1"),
        extended_dtypes=("int32",),
        outputs=(
            Output(dtype="float", when="rounding_mode is None"),
            Output(when="rounding_mode is not None"),
        ),
        reference=_hstack_div,
        description="""The tensors of a list (here three), joined along dim 1, or along dim 0 if
            they have one dim, then divided by divisor, a tensor that broadcasts to them (of no
            dims, too). rounding_mode None leaves the quotient as it is, in float32 if all are
            integers; 'trunc' rounds it towards 0 and 'floor' down, both in the inputs' dtype, which
            is the result's. Division by 0 gives infinities and NaN as IEEE 754 has it.""",
        flops="M*(K + L + N)",
        benchmark=Benchmark(dims={"M": 16, "K": 64, "L": 32, "N": 48}, distribution="normal"),
        perf=(
            {"M": 1024, "K": 512, "L": 256, "N": 256},
            {"M": 4096, "K": 2048, "L": 1024, "N": 1024},
            {"M": 8192, "K": 4096, "L": 2048, "N": 2048},
        ),
    ),
)
