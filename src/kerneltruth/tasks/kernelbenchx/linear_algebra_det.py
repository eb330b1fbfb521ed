"""Determinants, which a small change of the matrix may change much."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from kerneltruth.tasks.linear import (
    BATCH,
    BATCHES,
    DTYPES,
    JUDGED,
    THRESHOLD,
    count_of_matrices,
    finite,
    form_unless_unpivoted,
    given,
    size,
    wide,
    worst,
)
from kerneltruth.tasks.spec import Claim, Dim, Evidence, Promises, Task, task

_B, _N = Dim(symbol="B", role="batch", low=1), Dim(symbol="N", role="reduced", low=1, tried=65)
# Products of pivots in any order stay well within float32's range.
_LEAST, _MOST = 1e-30, 1e30
# Larger ones take seconds to judge.
_TIMED = (256, 1024)
_PERF = tuple({"B": 4, "N": n, "_matrix": "near_one"} for n in _TIMED)
_HOW = """It is judged by what rounding A may do to it: an error of at most
    prod(s + 30 eps |A|) - prod(s) + 30 N eps |det A| is right, where s are A's singular values and
    |A| is its Frobenius norm; eps is the rounding of the input's dtype, so TF32 is not enough.
    Matrices that are not finite, or whose pivots' product may leave float32's range on the way, are
    not judged."""
_SAYS_BATCH = "A has two dims, and the result none, or both have leading batch dims more."


def _det(A: Tensor) -> Tensor:
    finite(A)
    values = torch.linalg.svdvals(A)
    most, least = values.clamp_min(1).prod(-1), values.clamp_max(1).prod(-1)
    if bool(((most > _MOST) | (least < _LEAST)).any()):
        raise ValueError("a product of pivots may leave float32's range: nothing is demanded")
    det: Tensor = torch.linalg.det(A)
    return det


def _det_lu(A: Tensor, pivot: bool) -> Tensor:
    del pivot
    return _det(A)


def _det_qr(A: Tensor, mode: str) -> Tensor:
    del mode
    return _det(A)


def _is_det(e: Evidence) -> Iterator[Claim]:
    a, expected = given(e, "A"), e.reference[0]
    values = torch.linalg.svdvals(a)
    moved = values + (THRESHOLD * e.eps * size(a)).unsqueeze(-1)
    rounding = THRESHOLD * a.shape[-1] * e.eps * expected.abs()
    allowed = moved.prod(-1) - values.prod(-1) + rounding
    error = (wide(e.outputs[0]) - expected).abs()
    yield Claim("error / what rounding A may do to its determinant", worst(error, allowed), 1.0)


_task = partial(task, category="LinearAlgebra", dtypes=("float32",), outputs=(JUDGED,))

TASKS: tuple[Task, ...] = (
    _task(
        "det(A[*batch, N, N]: matrix(_matrix), _matrix='shuffled', _rank=2)",
        dims={"B": _B, "N": _N},
        where={"batch": BATCH, "count": count_of_matrices},
        attributes={"_matrix": ("spread", "raw"), "_rank": BATCHES},
        extended_dtypes=DTYPES[1:],
        reference=_det,
        claims=_is_det,
        description=f"""The determinant of each square matrix A [N, N], with its sign; A needs
            pivoting, and may be singular. {_SAYS_BATCH} {_HOW}""",
        flops="2*N**3/3*count",
        benchmark={"B": 2, "N": 16},
        perf=_PERF,
        promises=Promises(dtypes=DTYPES, out=True),
    ),
    _task(
        "determinant_lu(A[*batch, N, N]: matrix(form), pivot=True, _matrix='shuffled', _rank=2)",
        dims={"B": _B, "N": _N},
        where={"form": form_unless_unpivoted, "batch": BATCH, "count": count_of_matrices},
        attributes={"pivot": (False,), "_matrix": ("spread",), "_rank": BATCHES},
        extended_dtypes=DTYPES[1:],
        reference=_det_lu,
        claims=_is_det,
        description=f"""The determinant of each square matrix A [N, N] through its LU decomposition
            with partial pivoting: the product of U's diagonal, with the sign of the permutation.
            With `pivot=False` rows are not interchanged; A is diagonally dominant then.
            {_SAYS_BATCH} {_HOW}""",
        flops="2*N**3/3*count",
        benchmark={"B": 2, "N": 16},
        perf=_PERF,
        promises=Promises(dtypes=DTYPES, out=True),
    ),
    _task(
        "determinant_via_qr(A[N, N]: matrix(_matrix), mode='reduced', _matrix='shuffled')",
        dims={"N": _N},
        attributes={"mode": ("complete",), "_matrix": ("spread",)},
        extended_dtypes=("float64", "complex64"),
        reference=_det_qr,
        claims=_is_det,
        description=f"""The determinant of a square matrix A [N, N] through its QR decomposition:
            the product of R's diagonal times det(Q), which is 1 or -1. `mode` is that of the QR
            decomposition and makes no difference for a square matrix. The result has no dims.
            {_HOW}""",
        flops="4*N**3/3",
        benchmark={"N": 16},
        perf=tuple({"N": n, "_matrix": "near_one"} for n in _TIMED),
        promises=Promises(dtypes=("float32", "complex64"), out=True),
    ),
)
