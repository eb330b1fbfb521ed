"""Linear systems, judged by their backward error."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from kerneltruth.tasks.linear import (
    BATCH,
    BATCHES,
    DTYPES,
    HOW_A_SOLUTION,
    JUDGED,
    columns,
    count_of_matrices,
    finite,
    flushed,
    form_of_indefinite,
    form_unless_unpivoted,
    given,
    residual,
    size,
    solution,
    wide,
)
from kerneltruth.tasks.spec import Claim, Dim, Evidence, Promises, Role, Task, Variants, task

_SIDES = Variants("_b", {"matrix": "K", "vector": ""})


_DIMS: dict[str, Role | Dim] = {
    "B": Dim(symbol="B", role="batch", low=1),
    "N": Dim(symbol="N", role="reduced", low=1, tried=129),
    "K": Dim(symbol="K", role="spatial", low=1, tried=65),
}
_PERF = tuple({"B": 4, "N": n, "K": 64} for n in (256, 2048))
_BENCHMARK = {"B": 2, "N": 32, "K": 4}
# Products of larger values may leave float32's range on the way to a moderate result.
_MODERATE = (-1024.0, 1024.0)
_SAYS_BATCH = "A has two dims, or leading batch dims more, which B and the result have too."


def _cholesky_solve(B: Tensor, L: Tensor, upper: bool) -> Tensor:
    finite(B, L)
    return torch.cholesky_solve(B, L, upper=upper)


def _is_cholesky_solution(e: Evidence) -> Iterator[Claim]:
    b, factor, x = given(e, "B"), given(e, "L"), wide(e.outputs[0])
    lower = factor.mH if e.scalars["upper"] else factor
    yield solution(e, lower @ lower.mH, x, b, size(lower) ** 2)


def _solve(A: Tensor, B: Tensor) -> Tensor:
    finite(A, B)
    X: Tensor = torch.linalg.solve(A, B)
    return X


def _is_solution(e: Evidence) -> Iterator[Claim]:
    a = given(e, "A")
    yield solution(e, a, wide(e.outputs[0]), given(e, "B"), size(a))


def _solve_and_add(A: Tensor, b: Tensor, y: Tensor, alpha: float) -> Tensor:
    finite(A, b, y)
    X: Tensor = torch.linalg.solve_triangular(A, b, upper=True) + alpha * y
    return X


def _is_solution_plus(e: Evidence) -> Iterator[Claim]:
    """The backward error of what is left when the scaled vector is taken away again."""
    a, b, got = given(e, "A"), given(e, "b"), wide(e.outputs[0])
    added = (float(e.scalars["alpha"]) * given(e, "y")).expand_as(got)
    x = got - added
    of_a = size(a).unsqueeze(-1)
    sizes = columns(x) + columns(added) + columns(got)
    allowed = of_a * sizes + columns(b) + flushed(e, a.shape[-1]) * (1 + of_a)
    error = columns(b - a @ x)
    yield residual("|b - A (X - alpha y)| / (|A| (|x| + |alpha y|) + |b|)", error, allowed, e)


def _solve_ldl(A: Tensor, b: Tensor, hermitian: bool) -> Tensor:
    del hermitian
    return _solve(A, b)


def _is_ldl_solution(e: Evidence) -> Iterator[Claim]:
    a = given(e, "A")
    yield solution(e, a, wide(e.outputs[0]), given(e, "b"), size(a))


def _inverse(A: Tensor, pivot: bool) -> Tensor:
    del pivot
    finite(A)
    X: Tensor = torch.linalg.inv(A)
    return X


def _is_inverse(e: Evidence) -> Iterator[Claim]:
    """A stable inverse has a small residual on one side; on which, the algorithm decides."""
    a, X = given(e, "A"), wide(e.outputs[0])
    one = torch.eye(a.shape[-1], dtype=a.dtype)
    error = torch.minimum(size(a @ X - one), size(X @ a - one))
    yield residual("|A X - I| or |X A - I| / (|A| |X|)", error, size(a) * size(X), e)


_task = partial(task, category="LinearAlgebra", dtypes=("float32",), outputs=(JUDGED,))

TASKS: tuple[Task, ...] = (
    _task(
        "cholesky_solve(B[*batch, N, K], L[*batch, N, N]: triangular(form), upper=False)",
        dims=_DIMS,
        where={
            "form": lambda upper: "upper" if upper else "lower",
            "batch": BATCH,
            "count": count_of_matrices,
        },
        attributes={"upper": (True,)},
        values=_MODERATE,
        extended_dtypes=DTYPES[1:],
        reference=_cholesky_solve,
        claims=_is_cholesky_solution,
        description=f"""X of B's shape [N, K] with (L @ L.T) @ X = B for a lower triangular L, or
            with `upper=True` (L.T @ L) @ X = B for an upper triangular L; the other triangle is 0.
            L may have negative elements on its diagonal. L and B have two dims, or leading batch
            dims more. With A = L @ L.T: {HOW_A_SOLUTION}""",
        flops="2*N*N*K*count",
        benchmark=_BENCHMARK,
        perf=_PERF,
        promises=Promises(dtypes=DTYPES, out=True),
    ),
    _task(
        "invert_matrix_lu(A[*batch, N, N]: matrix(form), pivot=True, _matrix='shuffled', _rank=2)",
        dims={"B": _DIMS["B"], "N": _DIMS["N"]},
        where={"form": form_unless_unpivoted, "batch": BATCH, "count": count_of_matrices},
        attributes={"pivot": (False,), "_matrix": ("spread",), "_rank": BATCHES},
        extended_dtypes=DTYPES[1:],
        reference=_inverse,
        claims=_is_inverse,
        description=f"""The inverse X of an invertible matrix A [N, N] through its LU decomposition,
            with partial pivoting or, with `pivot=False`, without; then A is diagonally dominant.
            Judged by the smaller one of |A X - I| and |X A - I|, which must be at most 30 roundings
            of |A| |X| (Frobenius norms; in the input's dtype, not TF32). {_SAYS_BATCH} Matrices
            that are not finite are not judged.""",
        flops="2*N**3*count",
        benchmark={"B": 2, "N": 32},
        perf=tuple({"B": 4, "N": n} for n in (256, 2048)),
        promises=Promises(dtypes=DTYPES, out=True),
    ),
    _task(
        "solve(A[*batch, N, N]: matrix(_matrix), B[*batch, N, *sides], _b='matrix', "
        "_matrix='shuffled', _rank=2)",
        dims=_DIMS,
        where={"batch": BATCH, "sides": _SIDES, "count": count_of_matrices},
        attributes={"_b": ("vector",), "_matrix": ("spread",), "_rank": BATCHES},
        values=_MODERATE,
        extended_dtypes=DTYPES[1:],
        reference=_solve,
        claims=_is_solution,
        description=f"""X of B's shape with A @ X = B for a general invertible matrix A [N, N],
            which needs pivoting: its rows are in any order. B is a matrix [N, K] or a vector [N].
            {_SAYS_BATCH} (A batch of vectors is B [batch, N].) {HOW_A_SOLUTION}""",
        flops="(2*N**3/3 + 2*N*N*K)*count",
        benchmark=_BENCHMARK,
        perf=_PERF,
        promises=Promises(
            dtypes=DTYPES,
            out=True,
            not_tried={"left": "the published entry has no such parameter"},
        ),
    ),
    _task(
        "solve_and_add_scaled_vector(A[N, N]: triangular('upper'), b[N, K], y[N, *shape], "
        "alpha=0.5)",
        dims={s: _DIMS[s] for s in ("N", "K")},
        where={"shape": Variants("_y", {"column": "1", "matrix": "K"})},
        attributes={"alpha": (-2.0, 0.0, 1.0)},
        extended={"_y": ("matrix",)},
        values=_MODERATE,
        extended_dtypes=("float64",),
        reference=_solve_and_add,
        claims=_is_solution_plus,
        description=f"""x + alpha * y, of b's shape [N, K], where A @ x = b for an upper triangular
            A [N, N] (0 below its diagonal) and y is one column [N, 1], added to each of x, or a
            matrix [N, K]. With X = result - alpha * y, and |A| (|X| + |alpha y| + |result|) in
            place of |A| |X|: {HOW_A_SOLUTION}""",
        flops="N*N*K + 2*N*K",
        benchmark={"N": 32, "K": 4},
        perf=tuple({"N": n, "K": 64} for n in (256, 2048)),
    ),
    _task(
        "solve_symmetric_ldl(A[*batch, N, N]: indefinite(form), b[*batch, N, *sides], "
        "hermitian=False, _b='vector', _matrix='scaled', _rank=2)",
        dims=_DIMS,
        where={
            "form": form_of_indefinite,
            "batch": BATCH,
            "sides": _SIDES,
            "count": count_of_matrices,
        },
        attributes={
            "hermitian": (True,),
            "_b": ("matrix",),
            "_matrix": ("spread",),
            "_rank": BATCHES,
        },
        values=_MODERATE,
        extended_dtypes=("float64", "complex64"),
        reference=_solve_ldl,
        claims=_is_ldl_solution,
        description=f"""X of b's shape with A @ X = b for a symmetric, invertible, indefinite matrix
            A [N, N], through an LDL factorization with symmetric pivoting: A may have a 0 on its
            diagonal. b is a vector [N] or a matrix [N, K]. `hermitian` makes no difference for a
            real matrix. {_SAYS_BATCH} {HOW_A_SOLUTION}""",
        flops="(N**3/3 + 2*N*N*K)*count",
        benchmark=_BENCHMARK,
        perf=_PERF,
        promises=Promises(
            dtypes=("float32", "complex64"),
            out=True,
            not_tried={"hermitian=True in complex64": "PyTorch has no such solver on a GPU"},
            never={"complex64": "hermitian"},
        ),
    ),
)
