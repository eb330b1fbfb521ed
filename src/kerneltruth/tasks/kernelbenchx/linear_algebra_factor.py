"""Factorizations: Cholesky, LU, QR and LDL, judged by residual, orthogonality and structure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from kerneltruth.tasks.linear import (
    BATCH,
    BATCHES,
    DTYPES,
    HOW_A_FACTOR,
    count_of_matrices,
    exactly,
    finite,
    form_of_indefinite,
    form_unless_unpivoted,
    given,
    named,
    orthonormal,
    residual,
    size,
    triangular,
    wide,
    without_noise,
)
from kerneltruth.tasks.promises import SEVERAL_RESULTS
from kerneltruth.tasks.spec import (
    Claim,
    Dim,
    Evidence,
    Output,
    Promises,
    Role,
    Task,
    task,
)

_SAYS_BATCH = "A has two dims, or leading batch dims more, which the results have too."


def _dims(*symbols: str) -> dict[str, Role | Dim]:
    """Sizes that a decomposition in float64 takes in its stride."""
    sizes = {s: Dim(symbol=s, role="reduced", tried=129) for s in symbols}
    return {"B": "batch", **sizes}


def _cholesky(A: Tensor, upper: bool) -> Tensor:
    finite(A)
    L: Tensor = torch.linalg.cholesky(A, upper=upper)
    return L


def _is_cholesky(e: Evidence) -> Iterator[Claim]:
    a, got = given(e, "A"), wide(e.outputs[0])
    upper = bool(e.scalars["upper"])
    yield triangular("the factor", got, upper=upper)
    diagonal = got.diagonal(dim1=-2, dim2=-1)
    yield exactly("imaginary parts on the diagonal", diagonal - diagonal.conj(), 0.0)
    diagonal = diagonal.real
    yield Claim("diagonal elements that are not positive", float((~(diagonal > 0)).sum()), 0.0)
    lower = got.mH if upper else got
    n = max(a.shape[-1], 1)
    yield residual("|A - L L^T| / |A|", size(a - lower @ lower.mH), size(a), e, n)


def _lu(A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    finite(A)
    if pivot:
        P, L, U = torch.linalg.lu(A)
        return P, L, without_noise(U, A)
    L, U = _without_pivoting(A)
    return A.new_empty(0), L, U


def _without_pivoting(A: Tensor) -> tuple[Tensor, Tensor]:
    """Doolittle's elimination, which PyTorch has on a GPU only."""
    rows, columns = A.shape[-2:]
    inner = min(rows, columns)
    rest, L = A.clone(), torch.zeros((*A.shape[:-1], inner), dtype=A.dtype)
    for k in range(inner):
        L[..., k:, k] = rest[..., k:, k] / rest[..., k : k + 1, k]
        rest = rest - L[..., :, k : k + 1] * rest[..., k : k + 1, :] * _from_row(k + 1, rows)
    return L, rest[..., :inner, :].triu()


def _from_row(k: int, rows: int) -> Tensor:
    return (torch.arange(rows) >= k).unsqueeze(-1)


def _is_lu(e: Evidence) -> Iterator[Claim]:
    a = given(e, "A")
    P, L, U = (wide(t) for t in e.outputs)
    n = max(*a.shape[-2:], 1)
    expected = a
    if e.scalars["pivot"]:
        yield exactly("elements of P that are neither 0 nor 1", P * (1 - P), 0.0)
        yield exactly("sums of P's rows, less 1", P.sum(-1), 1.0)
        yield exactly("sums of P's columns, less 1", P.sum(-2), 1.0)
        expected = P.mH @ a
        # Partial pivoting divides by the largest element of a column; of complex ones LAPACK takes
        # that with the largest sum of both parts' magnitudes.
        largest = float(L.abs().amax()) if L.numel() else 0.0
        limit = math.sqrt(2) if L.is_complex() else 1.0
        yield Claim("largest element of L", largest, limit + 4 * e.eps)
    yield triangular("L", L, upper=False)
    yield triangular("U", U, upper=True)
    yield exactly("L's diagonal, less 1", L.diagonal(dim1=-2, dim2=-1), 1.0)
    yield residual("|A - P L U| / |A|", size(expected - L @ U), size(a), e, n)


def _qr(A: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    finite(A)
    Q, R = torch.linalg.qr(A, mode=mode)
    return Q, without_noise(R, A)


def _is_qr(e: Evidence) -> Iterator[Claim]:
    a, Q, R = given(e, "A"), wide(e.outputs[0]), wide(e.outputs[1])
    n = max(*a.shape[-2:], 1)
    yield triangular("R", R, upper=True)
    if e.scalars["mode"] == "r":
        yield residual("|A^T A - R^T R| / |A|^2", size(a.mH @ a - R.mH @ R), size(a) ** 2, e, n)
        return
    yield orthonormal("Q", Q, e)
    yield residual("|A - Q R| / |A|", size(a - Q @ R), size(a), e, n)


def _ldl(A: Tensor, hermitian: bool) -> tuple[Tensor, Tensor]:
    finite(A)
    LD, pivots = torch.linalg.ldl_factor(A, hermitian=hermitian)
    return LD.tril(), pivots


def _is_ldl(e: Evidence) -> Iterator[Claim]:
    a, LD, pivots = given(e, "A"), wide(e.outputs[0]), e.outputs[1]
    n = a.shape[-1]
    if a.numel() == 0:
        return
    made, wrong = [], 0
    for one, order in zip(LD.reshape(-1, n, n), pivots.reshape(-1, n).tolist(), strict=True):
        blocks = _blocks(order)
        wrong += blocks is None
        made.append(
            one.new_full((n, n), torch.nan)
            if blocks is None
            else _undone(one, blocks, symmetric=not e.scalars["hermitian"])
        )
    yield Claim("matrices with pivots that say nothing", float(wrong), 0.0)
    error = size(a - torch.stack(made).reshape(a.shape))
    yield residual("|A - L D L^T| / |A|", error, size(a), e, n)


def _blocks(pivots: list[int]) -> list[tuple[int, int, int]] | None:
    """Each block of D: where it begins, how large it is, and the row that came to its end.

    None where the pivots are not in LAPACK's notation, which counts from 1 and negates the pivots
    of a block of two.
    """
    found, k, n = [], 0, len(pivots)
    while k < n:
        width = 1 if pivots[k] > 0 else 2
        end = k + width - 1
        if end >= n or pivots[k] != pivots[end] or not end <= abs(pivots[k]) - 1 < n:
            return None
        found.append((k, width, abs(pivots[k]) - 1))
        k += width
    return found


def _undone(LD: Tensor, blocks: list[tuple[int, int, int]], *, symmetric: bool) -> Tensor:
    """The matrix that was factored: interchanges and eliminations undone, the last one first.

    With `symmetric` nothing is conjugated, which matters to complex matrices.
    """

    def turned(x: Tensor) -> Tensor:
        return x.mT if symmetric else x.mH

    n = LD.shape[-1]
    made = torch.zeros_like(LD)
    for k, width, other in reversed(blocks):
        end = k + width
        D = LD[k:end, k:end].tril()
        D = D + turned(D.tril(-1))
        below = LD[end:, k:end]
        made[k:end, k:end] = D
        made[end:, k:end] = below @ D
        made[k:end, end:] = turned(made[end:, k:end])
        made[end:, end:] += below @ D @ turned(below)
        if other != end - 1:
            order = list(range(n))
            order[end - 1], order[other] = other, end - 1
            made = made[order][:, order]
    return made


_task = partial(task, category="LinearAlgebra", dtypes=("float32",), extended_dtypes=DTYPES[1:])

TASKS: tuple[Task, ...] = (
    _task(
        "cholesky(A[*batch, N, N]: spd(_matrix), upper=False, _matrix='scaled', _rank=2)",
        dims=_dims("N"),
        where={"batch": BATCH, "count": count_of_matrices},
        attributes={"upper": (True,), "_matrix": ("spread",), "_rank": BATCHES},
        outputs=(named("out"),),
        reference=_cholesky,
        claims=_is_cholesky,
        description=f"""The Cholesky factor of each symmetric positive definite matrix A: the lower
            triangular L with a positive diagonal and A = L @ L.T, or with `upper=True` its
            transpose, an upper triangular U with A = U.T @ U. The other triangle is exactly 0.
            {_SAYS_BATCH} Judged by |A - L L^T| <= 30 n eps |A|. {HOW_A_FACTOR}""",
        flops="N**3/3*count",
        benchmark={"B": 2, "N": 32},
        perf=({"B": 4, "N": 256}, {"B": 4, "N": 2048}),
        promises=Promises(dtypes=DTYPES, out=True),
    ),
    _task(
        "ldl_factor(A[*batch, N, N]: indefinite(form), hermitian=False, _matrix='scaled', _rank=2)",
        dims=_dims("N"),
        where={"form": form_of_indefinite, "batch": BATCH, "count": count_of_matrices},
        attributes={"hermitian": (True,), "_matrix": ("spread",), "_rank": BATCHES},
        outputs=(named("LD"), Output(name="pivots", dtype="int32", compare="claims")),
        reference=_ldl,
        claims=_is_ldl,
        description=f"""The LDL factorization of each symmetric (indefinite) matrix A, as LAPACK's
            `sytrf` gives it for the lower triangle. Two outputs: LD, of A's shape, and int32
            pivots, of A's shape without the last dim. D is block diagonal with blocks of 1 and 2;
            LD holds D's lower triangle in its place and below each block the multipliers of the
            unit lower triangular L; what stands above the diagonal is not looked at. Pivots count
            from 1: pivots[k] = p > 0 says that block k is of size 1 and rows and columns k and p
            (p >= k) were interchanged before its elimination, multipliers of earlier columns
            staying where they are; pivots[k] = pivots[k+1] = -p < 0 says that k and k + 1 are a
            block of size 2 and rows and columns k + 1 and p were interchanged. Any choice of
            pivots is right that keeps |A - L D L^T| <= 30 n eps |A|; A may have a 0 on its
            diagonal. `hermitian` makes no difference for a real matrix. {_SAYS_BATCH}
            {HOW_A_FACTOR}""",
        flops="N**3/3*count",
        benchmark={"B": 2, "N": 32},
        perf=({"B": 4, "N": 256}, {"B": 4, "N": 1024}),
        promises=Promises(dtypes=DTYPES, not_tried={"out": SEVERAL_RESULTS}),
    ),
    _task(
        "lu(A[*batch, M, N]: matrix(form), pivot=True, _matrix='raw', _rank=2)",
        dims=_dims("M", "N"),
        where={"form": form_unless_unpivoted, "batch": BATCH, "count": count_of_matrices},
        attributes={"pivot": (False,), "_matrix": ("spread", "shuffled"), "_rank": BATCHES},
        outputs=(named("P"), named("L"), named("U")),
        reference=_lu,
        claims=_is_lu,
        description=f"""The LU decomposition with partial pivoting of each matrix A [M, N], which
            may be rectangular or singular: A = P @ L @ U with a permutation matrix P [M, M] (A's
            dtype, elements exactly 0 and 1), L [M, K] lower triangular with a diagonal of exactly 1
            and no element above 1 in magnitude, and U [K, N] upper triangular, K = min(M, N). The
            other triangles are exactly 0. A column without a pivot is left as it is, and L's
            elements there are 0. With `pivot=False` rows are not interchanged: A = L @ U, P is an
            empty tensor of shape [0], and A is diagonally dominant. {_SAYS_BATCH} Judged by
            |A - P L U| <= 30 n eps |A|. {HOW_A_FACTOR}""",
        flops="2*M*N*min(M, N)/3*count",
        benchmark={"B": 2, "M": 32, "N": 32},
        perf=tuple({"B": 4, "M": n, "N": n} for n in (256, 2048)),
        promises=Promises(
            dtypes=DTYPES,
            not_tried={
                "out": SEVERAL_RESULTS,
                "gradients": "they follow the pivots, of which several choices may be right",
            },
        ),
    ),
    _task(
        "qr(A[*batch, M, N]: matrix(_matrix), mode='reduced', _matrix='raw', _rank=2)",
        dims=_dims("M", "N"),
        where={"batch": BATCH, "count": count_of_matrices},
        attributes={
            "mode": ("complete", "r"),
            "_matrix": ("spread", "shuffled"),
            "_rank": BATCHES,
        },
        outputs=(named("Q"), named("R")),
        reference=_qr,
        claims=_is_qr,
        description=f"""The QR decomposition of each matrix A [M, N], which may be rectangular or
            singular: A = Q @ R with Q's columns orthonormal and R upper triangular, exactly 0 below
            its diagonal; the signs of R's diagonal are free. With K = min(M, N), `mode="reduced"`
            gives Q [M, K] and R [K, N], `mode="complete"` Q [M, M] and R [M, N], and `mode="r"`
            Q as an empty tensor of shape [0] and R [K, N]. {_SAYS_BATCH} Judged by
            |A - Q R| <= 30 n eps |A| and |Q^T Q - I| <= 30 M eps (which Gram-Schmidt does not keep
            unless it orthogonalizes twice); in mode "r" by |A^T A - R^T R| <= 30 n eps |A|^2.
            {HOW_A_FACTOR}""",
        flops="(2*max(M, N)*min(M, N)**2)*count",
        benchmark={"B": 2, "M": 32, "N": 32},
        perf=tuple({"B": 4, "M": n, "N": n} for n in (256, 2048)),
        promises=Promises(
            dtypes=DTYPES,
            not_tried={
                "out": SEVERAL_RESULTS,
                "gradients": "they follow the signs of R's diagonal, which are free",
            },
        ),
    ),
)
