"""Elementwise operators, and what broadcasts or fills."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from kerneltruth.tasks.formulas import stored
from kerneltruth.tasks.promises import NOT_TRIED_OF_MAKERS
from kerneltruth.tasks.spec import FLOATS, Output, Promises, Role, Sizes, Task, Variants, task

_PLAIN: dict[str, Role] = {"M": "batch", "N": "channel"}
_SHAPE = Variants("_rank", {2: "M, N", 1: "N", 3: "M, 2, N", 4: "M, 2, 3, N"})
_OTHER = Variants("_other", {"same": "M, N", "row": "N", "column": "M, 1", "scalar": ""})
_X = Variants("_form", {"row": "M, N", "outer": "M, 1", "scalar": "", "box": "M, 1, N"})
_Y = Variants("_form", {"row": "N", "outer": "N", "scalar": "M, N", "box": "2, 1"})
_SMALL = {"M": 32, "N": 128}
_PERF = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
_SAYS_RANK = "The input may have any number of dims."
_SAYS_OTHER = "other is a tensor of input's shape [M, N], or one that broadcasts to it: [N], [M, 1]"


def _mul_relu(input: Tensor, other: Tensor, inplace: bool) -> Tensor:
    del inplace
    return torch.relu(input * other)


def _softmax_mul(input: Tensor, other: Tensor, dim: int) -> Tensor:
    return torch.softmax(input, dim) * other


def _stored_softmax_mul(input: Tensor, other: Tensor, dim: int) -> Tensor:
    """With the softmax kept in the inputs' dtype, where a small one is 0, and 0 * inf is NaN."""
    return stored(torch.softmax(input, dim), input, other) * other


def _broadcast(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    both = torch.broadcast_tensors(x, y)  # type: ignore[no-untyped-call]
    return tuple(t.clone() for t in both)


def _softmax_mul_other(M: int, N: int, _other: str, _rank: int) -> Sizes:
    if _other == "same" and _rank == 2:
        return (M, N)
    if _other == "same":
        return (M, 2, N)
    if _other == "row":
        return (N,)
    return ()


_task = partial(task, dims=_PLAIN, extended_dtypes=("float64",), benchmark=_SMALL, perf=_PERF)

TASKS: tuple[Task, ...] = (
    _task(
        "broadcast_tensors(x[*x_shape], y[*y_shape])",
        category="Index",
        where={"x_shape": _X, "y_shape": _Y},
        # PyTorch returns views of the inputs.
        may_overwrite={"x": "True", "y": "True"},
        outputs=(Output(name="x_out"), Output(name="y_out")),
        reference=_broadcast,
        description="""x and y broadcast to their common shape, two outputs in the inputs' dtype:
            shapes are aligned at their last dims, missing dims count as 1, and a dim of 1 is
            repeated. A result may share memory with its input. x and y have from no dims to three,
            such as [M, N] and [N], [M, 1] and [N], [] and [M, N], [M, 1, N] and [2, 1].""",
        flops="0",
        bytes="0",
        promises=Promises(not_tried={"other than two tensors": "two are broadcast in every case"}),
    ),
    _task(
        "exp(input[*shape])",
        category="Math",
        where={"shape": _SHAPE},
        reference=lambda input: torch.exp(input),
        description=f"""exp(x) of each element, in the input's dtype. Minus infinity gives 0, what
            overflows infinity, NaN stays NaN. {_SAYS_RANK}""",
        flops="M*N",
        promises=Promises(out=True),
    ),
    _task(
        "mul_relu(input[M, N], other[*other_shape], inplace=False)",
        category="Fusion",
        where={"other_shape": _OTHER},
        attributes={"inplace": (True,)},
        extended={"_other": ("row", "column", "scalar")},
        # The prompt does not say where the result lies if both are given.
        constraints=("not inplace or _call != 'out'",),
        may_overwrite={"input": "inplace"},
        reference=_mul_relu,
        description=f"""max(input * other, 0) of each element, in the inputs' dtype; NaN stays NaN.
            {_SAYS_OTHER} or no dims. With `inplace=True` the result may be written over input and
            input returned.""",
        flops="2*M*N",
        promises=Promises(numbers=("other",), out=True),
    ),
    _task(
        "ones_like(input[*shape], dtype=None)",
        category="Math",
        where={"shape": _SHAPE},
        attributes={"dtype": ("torch.float64",)},
        reference=lambda input: torch.ones_like(input),
        description=f"""A tensor of ones of input's shape and device, in its dtype or in `dtype` if
            that is given; what input holds does not matter. {_SAYS_RANK}""",
        flops="0",
        bytes="itemsize*M*N",
        # The prompt says that the result has the input's dtype.
        promises=Promises(dtypes=FLOATS, not_tried=NOT_TRIED_OF_MAKERS),
    ),
    _task(
        "softmax_mul(input[*input_shape], other[*other_shape], dim=-1, dtype=None, _other='same', "
        "_rank=2)",
        category="Fusion",
        dims={"M": "batch", "N": "reduced"},
        where={
            "input_shape": Variants("_rank", {2: "M, N", 3: "M, 2, N"}),
            "other_shape": _softmax_mul_other,
        },
        attributes={
            "dim": (0, 1, -2),
            "dtype": ("torch.float64",),
            "_other": ("row", "scalar"),
            "_rank": (3,),
        },
        extended={"_other": ("row", "scalar")},
        reference=_softmax_mul,
        admissible=(_stored_softmax_mul,),
        description="""softmax(input, dim) * other, in the inputs' dtype: exp(x) over its sum along
            `dim` (negative ones counted from the end), with the largest element subtracted first,
            times other, a tensor of input's shape or one that broadcasts to it ([N] or no dims).
            A NaN or plus infinity makes all results that share its sum NaN. If `dtype`
            is given, the input is converted to it first, and the result has it.""",
        flops="6*M*N",
        promises=Promises(numbers=("other",), out=True),
    ),
    _task(
        "sqrt(input[*shape])",
        category="Math",
        where={"shape": _SHAPE},
        reference=lambda input: torch.sqrt(input),
        description=f"""The square root of each element, in the input's dtype: NaN below 0, infinity
            for infinity, -0.0 for -0.0. {_SAYS_RANK}""",
        flops="M*N",
        promises=Promises(out=True),
    ),
)
