"""Solving with a factorization, judged as KernelBenchX's solvers are."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from kerneltruth.tasks.linear import (
    HOW_A_SOLUTION,
    HOW_LEAST_SQUARES,
    JUDGED,
    finite,
    form_unless_unpivoted,
    given,
    least_squares,
    size,
    solution,
    wide,
)
from kerneltruth.tasks.spec import Claim, Dim, Evidence, Promises, Role, Task, Variants, task

_BATCH = Variants("_rank", {2: "", 3: "B"})


def _count(B: int, _rank: int) -> int:
    if _rank == 2:
        return 1
    return B


_DIMS: dict[str, Role | Dim] = {
    "B": Dim(symbol="B", role="batch", low=1),
    "N": Dim(symbol="N", role="reduced", low=1, tried=129),
    "K": Dim(symbol="K", role="spatial", low=1, tried=65),
}
# Products of larger values may leave float32's range on the way to a moderate result.
_MODERATE = (-1024.0, 1024.0)
_SIZES = (256, 1024, 4096)


def _solve(A: Tensor, Bs: Tensor, pivot: bool) -> Tensor:
    del pivot
    finite(A, Bs)
    X: Tensor = torch.linalg.solve(A, Bs)
    return X


def _is_solution(e: Evidence) -> Iterator[Claim]:
    a = given(e, "A")
    yield solution(e, a, wide(e.outputs[0]), given(e, "Bs"), size(a))


def _least_squares(A: Tensor, b: Tensor, mode: str) -> Tensor:
    del mode
    finite(A, b)
    vector = b.ndim == A.ndim - 1
    Q, R = torch.linalg.qr(A)
    expected = Q.mT @ (b.unsqueeze(-1) if vector else b)
    x: Tensor = torch.linalg.solve_triangular(R, expected, upper=True)
    return x.squeeze(-1) if vector else x


TASKS: tuple[Task, ...] = (
    task(
        "least_squares_qr(A[*batch, M, N]: matrix(_matrix), b[*batch, M, *b_shape], "
        "mode='reduced', _b='matrix', _matrix='shuffled', _rank=2)",
        category="LinearAlgebra",
        dims={**_DIMS, "M": Dim(symbol="M", role="reduced", low=1, tried=129)},
        where={
            "batch": _BATCH,
            "b_shape": Variants("_b", {"matrix": "K", "vector": ""}),
            "count": _count,
        },
        attributes={
            "mode": ("complete",),
            "_b": ("vector",),
            "_matrix": ("spread", "steep"),
            "_rank": (3,),
        },
        constraints=("M >= N", "_b == 'matrix' or _rank == 2"),
        values=_MODERATE,
        dtypes=("float32",),
        extended_dtypes=("float64",),
        outputs=(JUDGED,),
        reference=_least_squares,
        claims=least_squares,
        description=f"""x that makes |A @ x - b| least in each column, for a matrix A [M, N] of full
            rank with M >= N, through A's QR decomposition: R @ x = Q.T @ b. b is a vector [M] or a
            matrix [M, K], x then [N] or [N, K]; A and a matrix b may have a leading batch dim more.
            `mode` is that of the QR decomposition, "reduced" or "complete", and does not change
            the result. {HOW_LEAST_SQUARES}""",
        flops="(2*M*N*N + 2*M*N*K + N*N*K)*count",
        benchmark={"B": 1, "M": 32, "N": 16, "K": 4},
        perf=tuple({"B": 1, "M": n, "N": n // 2, "K": 64} for n in _SIZES),
        promises=Promises(out=True),
    ),
    task(
        "solve_multiple_lu(A[*batch, N, N]: matrix(form), Bs[*batch, N, K], pivot=True, "
        "_matrix='shuffled', _rank=2)",
        category="LinearAlgebra",
        dims=_DIMS,
        where={"form": form_unless_unpivoted, "batch": _BATCH, "count": _count},
        attributes={"pivot": (False,), "_matrix": ("spread",), "_rank": (3,)},
        values=_MODERATE,
        dtypes=("float32",),
        extended_dtypes=("float64",),
        outputs=(JUDGED,),
        reference=_solve,
        claims=_is_solution,
        description=f"""X of Bs' shape [N, K] with A @ X = Bs for an invertible matrix A [N, N],
            whose LU decomposition is computed once and used for all columns; both may have a
            leading batch dim more. With partial pivoting, which A needs, or with `pivot=False`
            without; then A is diagonally dominant. {HOW_A_SOLUTION}""",
        flops="(2*N**3/3 + 2*N*N*K)*count",
        benchmark={"B": 1, "N": 32, "K": 4},
        perf=tuple({"B": 1, "N": n, "K": 64} for n in _SIZES),
        promises=Promises(out=True),
    ),
)
