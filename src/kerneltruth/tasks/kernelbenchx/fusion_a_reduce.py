"""Reductions with something before them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.formulas import fits_half, gelu_by_formula, narrowest, stored
from kerneltruth.tasks.promises import SEVERAL_RESULTS
from kerneltruth.tasks.spec import (
    Benchmark,
    Claim,
    Evidence,
    Output,
    Promises,
    Scalar,
    Sizes,
    Task,
    Variants,
    nonempty,
    task,
)

_WIDER = ("torch.float64",)
_Dim = int | tuple[int, ...] | None

_DIMS = nonempty(M="batch", N="reduced")
_ONE_DIM: tuple[Scalar, ...] = (0, 1, -1)
_REDUCED: dict[str, tuple[Scalar, ...]] = {
    "dim": (*_ONE_DIM, (0, 1)),
    "keepdim": (True,),
    "_rank": (1, 3),
}
_FITS = "_rank != 1 or dim in (None, 0, -1)"
_BENCHMARK = Benchmark(dims={"M": 16, "N": 256}, distribution="normal")
_PERF = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
_OVER = """Over dim, an int (negative ones count from the end) or a tuple of ints, which the
    result lacks, or has with size 1 if keepdim is True; with dim None over all elements, which
    gives a scalar, or with keepdim True all sizes 1. """
_GELU = """GELU is x * (1 + erf(x / sqrt(2))) / 2 for approximate 'none' and
    x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 for 'tanh'. """
_SHAPE = Variants("_rank", {2: "M, N", 1: "M * N", 3: "M, 2, N"})


def _add_mean(input: Tensor, other: Tensor, dim: _Dim, alpha: float, keepdim: bool) -> Tensor:
    return (input + alpha * other).mean(dim, keepdim)


def _exp_mean(input: Tensor, dim: _Dim, keepdim: bool) -> Tensor:
    return input.exp().mean(dim, keepdim)


def _exp_mean_in_half(input: Tensor, dim: _Dim, keepdim: bool) -> Tensor:
    """Exponentials may overflow in float16, whose mean in float64 does not."""
    powers = input.exp()
    if fits_half(input):
        powers = powers.half().to(input.dtype)
    return powers.mean(dim, keepdim)


def _least(x: Tensor, dim: int | None, keepdim: bool) -> tuple[Tensor, ...]:
    if dim is None:
        return (x.min(),)
    least = torch.min(x, dim, keepdim)
    return least.values, least.indices


def _gelu_min(
    input: Tensor, approximate: str, dim: int | None, keepdim: bool
) -> tuple[Tensor, ...]:
    return _least(F.gelu(input, approximate=approximate), dim, keepdim)


def _gelu_min_by_formula(
    input: Tensor, approximate: str, dim: int | None, keepdim: bool
) -> tuple[Tensor, ...]:
    return _least(gelu_by_formula(input, approximate), dim, keepdim)


def _points_at_least(evidence: Evidence) -> Iterator[Claim]:
    """Indices are in range and point at elements whose GELU is the least, up to rounding."""
    dim, keepdim = evidence.scalars["dim"], evidence.scalars["keepdim"]
    x = evidence.inputs["input"]
    if dim is None or x is None:
        return
    least, indices = evidence.reference[0], evidence.outputs[1].long()
    where = evidence.reference[1]
    if not keepdim:
        least, indices, where = (t.unsqueeze(dim) for t in (least, indices, where))
    within = (indices >= 0) & (indices < x.shape[dim])
    there = x.gather(dim, indices.clamp(0, x.shape[dim] - 1))
    value = F.gelu(there, approximate=evidence.scalars["approximate"])
    sizes = there.abs() + x.gather(dim, where).abs()
    slack = 8 * evidence.eps * torch.nan_to_num(sizes, posinf=0.0)
    same = (value - least <= slack) | (value.isnan() & least.isnan()) | (value == least)
    wrong = float((~(within & same)).sum())
    yield Claim("indices that do not point at the minimum", wrong, 0.0)


def _std(x: Tensor, dim: _Dim, keepdim: bool, correction: int) -> Tensor:
    """In two passes; NaN or infinite where no degree of freedom is left."""
    total = (x - x.mean(dim, True)).square().sum(dim, keepdim)
    freedom = x.numel() // max(total.numel(), 1) - correction
    return torch.sqrt(total / max(freedom, 0))


def _gelu_std(input: Tensor, dim: _Dim, keepdim: bool, correction: int, approximate: str) -> Tensor:
    return _std(F.gelu(input, approximate=approximate), dim, keepdim, correction)


def _gelu_std_by_formula(
    input: Tensor, dim: _Dim, keepdim: bool, correction: int, approximate: str
) -> Tensor:
    return _std(gelu_by_formula(input, approximate), dim, keepdim, correction)


def _gelu_std_stored(
    input: Tensor, dim: _Dim, keepdim: bool, correction: int, approximate: str
) -> Tensor:
    """With GELU in the input's dtype: two results may be one there, and 0 / 0 stand for x / 0."""
    return _std(stored(F.gelu(input, approximate=approximate), input), dim, keepdim, correction)


def _add_mean_converted_late(
    input: Tensor, other: Tensor, dim: _Dim, alpha: float, keepdim: bool, dtype: str | None
) -> Tensor:
    """With sums that are converted to the dtype that is asked for once they are formed."""
    own = _own(input, dtype)
    total = input.to(own) + alpha * torch.as_tensor(other).to(own)
    return total.to(input.dtype).mean(dim, keepdim)


def _exp_mean_converted_late(input: Tensor, dim: _Dim, keepdim: bool, dtype: str | None) -> Tensor:
    """With exponentials that are converted to the dtype that is asked for once they are formed."""
    return input.to(_own(input, dtype)).exp().to(input.dtype).mean(dim, keepdim)


def _own(input: Tensor, dtype: str | None) -> torch.dtype:
    """The dtype that the input had before it was converted to the one that is asked for."""
    if dtype is None:
        return input.dtype
    narrow = narrowest(input)
    return narrow if narrow in (torch.float16, torch.bfloat16) else torch.float32


def _fused_add_mean_other(M: int, N: int, _rank: int, _other: str) -> Sizes:
    if _other == "same":
        return (M, N) if _rank == 2 else (M * N,) if _rank == 1 else (M, 2, N)
    if _other == "row":
        return (N,)
    if _other == "column":
        return (M, 1)
    return ()


_task = partial(
    task, category="Fusion", dims=_DIMS, benchmark=_BENCHMARK, perf=_PERF, where={"shape": _SHAPE}
)

TASKS: tuple[Task, ...] = (
    _task(
        "fused_add_mean(input[*input_shape], other[*other_shape], dim=None, alpha=1, "
        "keepdim=False, dtype=None, _rank=2, _other='same')",
        where={
            "input_shape": _SHAPE,
            "other_shape": _fused_add_mean_other,
        },
        attributes=_REDUCED
        | {"alpha": (0.5, -2), "dtype": _WIDER, "_other": ("row", "column", "scalar")},
        extended_dtypes=("complex64",),
        promises=Promises(
            dtypes=("float32", "complex64"),
            numbers=("other",),
            out=True,
            not_tried={"integers": "PyTorch's own mean refuses them"},
        ),
        constraints=(_FITS, "_other in ('same', 'scalar') or _rank == 2"),
        reference=_add_mean,
        admissible=(_add_mean_converted_late,),
        description=f"""The mean of input + alpha * other, where other has the input's shape or
            broadcasts to it. {_OVER} The result has the input's dtype, or `dtype` if that is given,
            to which the sums may be converted before or after they are formed.""",
        flops="3*M*N",
    ),
    _task(
        "fused_exp_mean(input[*shape], dim=None, keepdim=False, dtype=None, _rank=2)",
        attributes=_REDUCED | {"dtype": _WIDER},
        constraints=(_FITS,),
        reference=_exp_mean,
        admissible=(_exp_mean_in_half, _exp_mean_converted_late),
        description=f"""The mean of exp(input). {_OVER} The result has the input's dtype; a mean
            that this holds may also be infinite where one of its exponentials overflows in that
            dtype. If `dtype` is given, the result has it; the exponentials may be formed before the
            conversion or after it.""",
        flops="3*M*N",
        promises=Promises(out=True),
    ),
    _task(
        "fused_gelu_min(input[*shape], approximate='none', dim=None, keepdim=False)",
        attributes={"approximate": ("tanh",), "dim": _ONE_DIM, "keepdim": (True,)},
        constraints=(_FITS, "dim is not None or not keepdim"),
        reference=_gelu_min,
        admissible=(_gelu_min_by_formula,),
        outputs=(
            Output(name="values"),
            Output(name="indices", dtype="int64", compare="claims", when="dim is not None"),
        ),
        claims=_points_at_least,
        description=f"""The least GELU of the elements. {_GELU} With dim None the result is one
            scalar, the least of all. With an int dim (negative ones count from the end) there are
            two results: the least along it, and int64 indices of elements where it is reached,
            any of several; both lack dim, or have it with size 1 if keepdim is True. NaN is less
            than everything. Values have the input's dtype.""",
        flops="10*M*N",
        promises=Promises(recipes=("mixed_amplitude",), not_tried={"out": SEVERAL_RESULTS}),
    ),
    _task(
        "fused_gelu_std(input[*shape], dim=None, keepdim=False, correction=1, approximate='none', "
        "_rank=2)",
        attributes=_REDUCED | {"correction": (0, 2), "approximate": ("tanh",)},
        constraints=(_FITS,),
        reference=_gelu_std,
        admissible=(_gelu_std_by_formula, _gelu_std_stored),
        description=f"""The standard deviation of GELU(input): the root of the sum of squared
            distances from the mean over max(n - correction, 0), n being the number of elements;
            0 / 0 is NaN. {_GELU} {_OVER} The result has the input's dtype.""",
        flops="14*M*N",
        promises=Promises(recipes=("exp_edge",), out=True),
    ),
)
