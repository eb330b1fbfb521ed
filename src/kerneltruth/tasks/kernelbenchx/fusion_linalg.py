"""Fusions of a factorization with what it is for: solving, or putting together again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from kerneltruth.tasks.linear import (
    HOW_A_PRODUCT,
    HOW_A_SOLUTION,
    HOW_LEAST_SQUARES,
    JUDGED,
    beyond_tf32,
    finite,
    given,
    least_squares,
    residual,
    size,
    solution,
    wide,
)
from kerneltruth.tasks.spec import Claim, Dim, Evidence, Role, Task, task

_M = Dim(symbol="M", role="reduced", low=1, tried=129)
_N = Dim(symbol="N", role="reduced", low=1, tried=129)
_DIMS: dict[str, Role | Dim] = {"N": _N, "K": Dim(symbol="K", role="spatial", low=1, tried=65)}
# Products of larger values may leave float32's range on the way to a moderate result.
_MODERATE = (-1024.0, 1024.0)
_SIZES = (256, 2048)


def _solve(A: Tensor, b: Tensor) -> Tensor:
    finite(A, b)
    x: Tensor = torch.linalg.solve(A, b)
    return x


def _is_solution(e: Evidence) -> Iterator[Claim]:
    a = given(e, "A")
    yield solution(e, a, wide(e.outputs[0]), given(e, "b"), size(a))


def _least_squares(A: Tensor, b: Tensor) -> Tensor:
    finite(A, b)
    Q, R = torch.linalg.qr(A)
    x: Tensor = torch.linalg.solve_triangular(R, Q.mT @ b, upper=True)
    return x


def _reconstruct(A: Tensor) -> Tensor:
    """Without rounding, a matrix put together again is the matrix."""
    finite(A)
    return A.clone()


def _is_reconstructed(e: Evidence) -> Iterator[Claim]:
    a = given(e, "A")
    n, whole = max(a.shape), size(a)
    U, S, Vh = torch.linalg.svd(a)
    off = beyond_tf32(wide(e.outputs[0]) - a, a, (U, S, Vh), whole, e, n)
    yield residual("|X - A| / |A|", size(off), whole, e, n)


_task = partial(
    task, category="Fusion", dtypes=("float32",), extended_dtypes=("float64",), outputs=(JUDGED,)
)

TASKS: tuple[Task, ...] = (
    _task(
        "fused_cholesky_solve(A[N, N]: spd(_matrix), b[N, K], _matrix='scaled')",
        dims=_DIMS,
        attributes={"_matrix": ("spread",)},
        values=_MODERATE,
        reference=_solve,
        claims=_is_solution,
        description=f"""x [N, K] with A @ x = b for a symmetric positive definite matrix A [N, N]
            and a matrix b [N, K], through A's Cholesky factor L: L @ y = b, then L.T @ x = y.
            {HOW_A_SOLUTION}""",
        flops="N**3/3 + 2*N*N*K",
        benchmark={"N": 32, "K": 4},
        perf=tuple({"N": n, "K": 64} for n in _SIZES),
    ),
    _task(
        "fused_lu_solve(A[N, N]: matrix(_matrix), b[N], _matrix='shuffled')",
        dims={"N": _N},
        attributes={"_matrix": ("spread",)},
        values=_MODERATE,
        reference=_solve,
        claims=_is_solution,
        description=f"""x [N] with A @ x = b for an invertible matrix A [N, N] and a vector b [N],
            through A's LU decomposition with partial pivoting, which A needs: its rows are in any
            order. {HOW_A_SOLUTION}""",
        flops="2*N**3/3 + 2*N*N",
        benchmark={"N": 32},
        perf=tuple({"N": n} for n in _SIZES),
    ),
    _task(
        "fused_qr_solve(A[M, N]: matrix(_matrix), b[M, K], _matrix='shuffled')",
        dims={"M": _M, **_DIMS},
        attributes={"_matrix": ("spread", "steep")},
        constraints=("M >= N",),
        values=_MODERATE,
        reference=_least_squares,
        claims=least_squares,
        description=f"""x [N, K] that makes |A @ x - b| least in each column, for a matrix A [M, N]
            of full rank with M >= N and b [M, K], through A's QR decomposition: R @ x = Q.T @ b.
            For a square A that is the solution of A @ x = b. {HOW_LEAST_SQUARES}""",
        flops="2*M*N*N + 2*M*N*K + N*N*K",
        benchmark={"M": 32, "N": 16, "K": 4},
        perf=tuple({"M": n, "N": n // 2, "K": 64} for n in _SIZES),
    ),
    _task(
        "fused_svd_reconstruct(A[M, N]: matrix(_matrix), _matrix='raw')",
        dims={"M": _M, "N": _N},
        attributes={"_matrix": ("spread", "shuffled", "flat", "deficient")},
        reference=_reconstruct,
        claims=_is_reconstructed,
        description=f"""A matrix A [M, N] put together again from its singular value decomposition,
            U @ diag(S) @ Vh: A itself, up to rounding. Judged by |X - A| <= 30 n eps |A|.
            {HOW_A_PRODUCT}""",
        flops="8*M*N*min(M, N)",
        benchmark={"M": 16, "N": 16},
        perf=tuple({"M": n, "N": n} for n in (128, 512)),
    ),
)
