"""Reductions along one dim, several, or all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.formulas import gelu_by_formula
from kerneltruth.tasks.promises import SEVERAL_RESULTS
from kerneltruth.tasks.spec import (
    Benchmark,
    Claim,
    Dim,
    Evidence,
    Output,
    Promises,
    Role,
    Task,
    Variants,
    nonempty,
    task,
)

_DIMS: dict[str, Role | Dim] = {"L": "batch", "M": "spatial", "N": "reduced"}
_NONEMPTY = nonempty(L="batch", M="spatial", N="reduced")
_SHAPE = Variants("_rank", {3: "L, M, N", 2: "M, N", 1: "N"})


def _count(L: int, M: int, N: int, _rank: int) -> int:
    return N * (L * M if _rank == 3 else M if _rank == 2 else 1)


def _along(dim: int | tuple[int, ...] | None, _rank: int) -> int:
    return _rank >= (1 if dim in (None, -1, 0) else 2 if dim in (1, -2, (0, -1)) else 3)


_ONE = (0, 1, -2)
_SEVERAL = ((0, 1), (0, -1), (0, 2), (-1, 1), (0, 1, 2))
_WIDER = ("torch.float64",)
_DIMS_AND_DTYPE = {
    "dim": (*_ONE, *_SEVERAL, None),
    "keepdim": (True,),
    "dtype": _WIDER,
    "_rank": (2, 1),
}
_BENCHMARK = {"L": 1, "M": 8, "N": 256}
_NORMAL = Benchmark(dims=_BENCHMARK, distribution="normal")
_PERF = (
    {"L": 1, "M": 1024, "N": 1024},
    {"L": 1, "M": 8192, "N": 4096},
    {"L": 1, "M": 16384, "N": 8192},
)
_SAYS_DIM = """`dim` is an int, which may be negative; with `keepdim=True` the reduced dim stays
    with size 1. The input has one, two or three dims."""
_SAYS_DIMS = """`dim` is an int or a tuple of ints, which may be negative, or None, which means all
    dims (the result then has none); with `keepdim=True` the reduced dims stay with size 1. The
    input has one, two or three dims. """
_SAYS_DTYPE = """If `dtype` is given, the input is converted to it first, and the result has it."""
# What rounding may do to the choice between two GELUs of nearly the same value, near its minimum.
_SAME_GELU = 16.0


def _std(
    input: Tensor, dim: int | tuple[int, ...] | None, correction: int, keepdim: bool
) -> Tensor:
    """The standard deviation in two passes; NaN where no degree of freedom is left."""
    dims = tuple(range(input.ndim)) if dim is None else (dim,) if isinstance(dim, int) else dim
    count = 1
    for d in dims:
        count *= input.shape[d]
    squares = (input - input.mean(dims, True)).square().sum(dims, keepdim)
    return torch.sqrt(squares / max(count - correction, 0))


def _minimum(values: Tensor, dim: int | None, keepdim: bool) -> Tensor | tuple[Tensor, Tensor]:
    if dim is None:
        return values.min()
    found = values.min(dim, keepdim)
    return found.values, found.indices


def _min_gelu(
    input: Tensor, dim: int | None, keepdim: bool, approximate: str
) -> Tensor | tuple[Tensor, Tensor]:
    return _minimum(F.gelu(input, approximate=approximate), dim, keepdim)


def _min_gelu_by_erf(
    input: Tensor, dim: int | None, keepdim: bool, approximate: str
) -> Tensor | tuple[Tensor, Tensor]:
    return _minimum(gelu_by_formula(input, approximate), dim, keepdim)


def _points_at(values: Tensor, evidence: Evidence, slack: float) -> Iterator[Claim]:
    """Indices in range at which the due value stands, or one that may pass for it."""
    dim, keepdim = evidence.scalars["dim"], evidence.scalars["keepdim"]
    indices, expected = evidence.outputs[1], evidence.reference[0].to(torch.float64)
    outside = (indices < 0) | (indices >= values.shape[dim])
    yield Claim("indices out of range", float(outside.sum()), 0)
    safe = torch.where(outside, 0, indices)
    if not keepdim:
        safe, expected = safe.unsqueeze(dim), expected.unsqueeze(dim)
    found = values.gather(dim, safe)
    near = (found - expected).abs() <= slack * evidence.eps * expected.abs().clamp_min(0.25)
    if not slack:
        near = found == expected
    same = near | (found == expected) | (found.isnan() & expected.isnan())
    yield Claim("indices at which the minimum does not stand", float((~same).sum()), 0)


def _index_of_min(evidence: Evidence) -> Iterator[Claim]:
    values = evidence.inputs["input_tensor"]
    assert values is not None
    yield from _points_at(values.to(torch.float64), evidence, 0.0)


def _index_of_min_gelu(evidence: Evidence) -> Iterator[Claim]:
    if evidence.scalars["dim"] is None:
        return
    x = evidence.inputs["input"]
    assert x is not None
    values = F.gelu(x.to(torch.float64), approximate=evidence.scalars["approximate"])
    yield from _points_at(values, evidence, _SAME_GELU)


_task = partial(
    task,
    category="Reduce",
    perf=_PERF,
    where={"shape": _SHAPE, "along": _along, "count": _count},
    constraints=("along",),
)

TASKS: tuple[Task, ...] = (
    _task(
        "sum(input[*shape], dim=-1, keepdim=False, dtype=None, _rank=3)",
        dims=_DIMS,
        attributes=_DIMS_AND_DTYPE,
        reference=lambda input, dim, keepdim: input.sum(dim, keepdim),
        description=f"The sum along `dim`, in the input's dtype; 0 over nothing. {_SAYS_DIMS} "
        f"{_SAYS_DTYPE}",
        flops="count",
        benchmark=_BENCHMARK,
        extended_dtypes=("float64",),
    ),
    _task(
        "mean(input_tensor[*shape], dim=-1, keepdim=False, dtype=None, _rank=3)",
        dims=_DIMS,
        attributes=_DIMS_AND_DTYPE,
        extended={"dim": (None,)},
        reference=lambda input_tensor, dim, keepdim: input_tensor.mean(dim, keepdim),
        description=f"The mean along `dim`, in the input's dtype; NaN over nothing. {_SAYS_DIMS} "
        f"{_SAYS_DTYPE}",
        flops="count",
        benchmark=_BENCHMARK,
        extended_dtypes=("float64",),
        promises=Promises(out=True),
    ),
    _task(
        "std(input[*shape], dim=None, correction=1, keepdim=False)",
        dims=_DIMS,
        attributes={"dim": (-1, *_ONE, *_SEVERAL), "correction": (0, 2), "keepdim": (True,)},
        reference=_std,
        description=f"""The standard deviation along `dim`: the root of the sum of squared distances
            from the mean over n - correction, n being the number of elements that are reduced, in
            the input's dtype; infinite or NaN where n - correction is not positive (a division by
            0). The squares of the values may cancel or overflow where their distances from the mean
            do not. {_SAYS_DIMS}""",
        flops="4*count",
        benchmark=_NORMAL,
        promises=Promises(recipes=("far_from_zero",), out=True),
    ),
    _task(
        "argmax(input_tensor[*shape], dim=-1, keepdim=False)",
        dims=_NONEMPTY,
        attributes={"dim": (*_ONE, None), "keepdim": (True,)},
        outputs=(Output(dtype="int64", compare="exact"),),
        reference=lambda input_tensor, dim, keepdim: input_tensor.argmax(dim, keepdim),
        description=f"""The int64 index of the maximum along `dim`: the first one where there are
            several, and the first NaN where there is one. With `dim=None` it is the index into the
            flattened input. {_SAYS_DIM}""",
        flops="count",
        benchmark=_BENCHMARK,
        extended_dtypes=("float64", "int32"),
    ),
    _task(
        "min(input_tensor[*shape], dim=-1, keepdim=False)",
        dims=_NONEMPTY,
        attributes={"dim": _ONE, "keepdim": (True,)},
        outputs=(
            Output(name="values"),
            Output(name="indices", dtype="int64", compare="claims"),
        ),
        claims=_index_of_min,
        reference=lambda input_tensor, dim, keepdim: _minimum(input_tensor, dim, keepdim),
        description=f"""The minimum along `dim`, in the input's dtype, and the int64 index at which
            it stands; where it stands several times any of its indices is right. NaN where there is
            one, with the index of a NaN. Two outputs: values, indices. {_SAYS_DIM}""",
        flops="count",
        benchmark=_BENCHMARK,
        extended_dtypes=("float64", "int32"),
    ),
    _task(
        "min_gelu(input[*shape], dim=None, keepdim=False, approximate='none')",
        dims=_NONEMPTY,
        attributes={"dim": (-1, *_ONE), "keepdim": (True,), "approximate": ("tanh",)},
        outputs=(
            Output(name="values"),
            Output(name="indices", dtype="int64", compare="claims", when="dim is not None"),
        ),
        claims=_index_of_min_gelu,
        reference=_min_gelu,
        admissible=(_min_gelu_by_erf,),
        description="""The minimum of GELU(x) over the input, GELU(x) being x * Phi(x) =
            0.5 * x * (1 + erf(x / sqrt(2))), or with `approximate="tanh"`
            0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))). GELU falls to -0.17 near
            x = -0.75 and rises again, so the least x is not where its minimum stands. With
            `dim=None` the result is one tensor of no dims (`keepdim` then means nothing). With an
            int `dim`, which may be negative, there are two outputs: the minima along that dim and
            the int64 index at which each stands (any, where the values agree within rounding);
            `keepdim=True` keeps the dim with size 1. NaN where there is one. The input has one, two
            or three dims. A candidate may have a parameter `out`; it is never passed.""",
        flops="9*count",
        benchmark=_NORMAL,
        promises=Promises(recipes=("mixed_amplitude",), not_tried={"out": SEVERAL_RESULTS}),
    ),
)
