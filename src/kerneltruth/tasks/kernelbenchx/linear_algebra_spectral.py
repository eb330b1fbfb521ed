"""Eigenvalues and singular values, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from kerneltruth.tasks.linear import (
    BATCH,
    BATCHES,
    DTYPES,
    HOW_A_FACTOR,
    HOW_A_PRODUCT,
    between,
    beyond_tf32,
    columns,
    count_of_matrices,
    finite,
    given,
    looks_like_tf32,
    named,
    orthonormal,
    residual,
    size,
    wide,
    without_noise,
)
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
# A singular value this close to the cut, relative to it, may fall on either side.
_AT_THE_CUT = 0.01
_POWERS = 3


def _dims(low: int, tried: int, *symbols: str) -> dict[str, Role | Dim]:
    sizes = {s: Dim(symbol=s, role="reduced", low=low, tried=tried) for s in symbols}
    return {"B": Dim(symbol="B", role="batch", low=1), **sizes}


def _eig(A: Tensor) -> tuple[Tensor, Tensor]:
    finite(A)
    values, vectors = torch.linalg.eig(A)
    return without_noise(values, A), vectors


def _is_eig(e: Evidence) -> Iterator[Claim]:
    a = given(e, "A")
    values, V = wide(e.outputs[0]), wide(e.outputs[1])
    n, whole = max(a.shape[-1], 1), size(a)
    lengths = (columns(V) - 1).abs()
    yield residual("length of an eigenvector, less 1", lengths, torch.ones_like(lengths), e, n)
    error = size(a.to(V.dtype) @ V - V * values.unsqueeze(-2))
    yield residual("|A V - V diag(w)| / |A|", error, whole, e, n)
    # No eigenvalue may be missing while another comes twice: sums of powers are the traces'.
    power = torch.eye(a.shape[-1], dtype=a.dtype)
    for k in range(1, _POWERS + 1):
        power = power @ a
        trace = power.diagonal(dim1=-2, dim2=-1).sum(-1)
        error = (values.pow(k).sum(-1) - trace).abs()
        yield residual(f"|sum w^{k} - trace A^{k}| / |A|^{k}", error, k * whole**k, e, n)


def _svd(A: Tensor, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
    finite(A)
    U, S, Vh = torch.linalg.svd(A, full_matrices=full_matrices)
    return U, without_noise(S, A), Vh


def _is_svd(e: Evidence) -> Iterator[Claim]:
    a = given(e, "A")
    U, S, Vh = (wide(t) for t in e.outputs)
    n, inner = max(*a.shape[-2:], 1), S.shape[-1]
    rises = (S[..., 1:] - S[..., :-1]).clamp_min(0).sum() if inner > 1 else S.new_zeros(())
    yield Claim("rises among singular values", float(rises), 0.0)
    yield Claim("singular values below 0", float(S.clamp_max(0).abs().sum()), 0.0)
    yield orthonormal("U", U, e)
    yield orthonormal("V", Vh.mH, e)
    made = (U[..., :inner] * S.unsqueeze(-2)) @ Vh[..., :inner, :]
    yield residual("|A - U S V^T| / |A|", size(a - made), size(a), e, n)
    off = torch.linalg.vector_norm(S - e.reference[1], dim=-1)
    yield residual("|S - singular values of A| / |A|", off, size(a), e, n)


def _low_rank(A: Tensor, k: int, full_matrices: bool) -> Tensor:
    del full_matrices
    finite(A)
    U, S, Vh = torch.linalg.svd(A, full_matrices=False)
    return without_noise((U[..., :k] * S[..., None, :k]) @ Vh[..., :k, :], A)


def _is_low_rank(e: Evidence) -> Iterator[Claim]:
    """Eckart and Young's conditions, in the bases of X's own singular vectors.

    Where singular values at the cut are equal, A has several best approximations. Cut to TF32, the
    factors of X still have k columns and rows, so its rank stays at k.
    """
    a, got, k = given(e, "A"), wide(e.outputs[0]), int(e.scalars["k"])
    n, whole = max(*a.shape[-2:], 1), size(a)
    U, S, Vh = torch.linalg.svd(got)
    beyond = torch.linalg.vector_norm(S[..., k:], dim=-1)
    yield residual(f"singular values beyond the first {k} / |A|", beyond, whole, e, n)
    off, error = U.mH @ (a - got) @ Vh.mH, got - e.reference[0]
    exact = torch.linalg.svd(a)
    last, after = torch.nn.functional.pad(exact.S, (0, 1))[..., k - 1 : k + 1].unbind(-1)
    first = (exact.U, exact.S * (torch.arange(exact.S.shape[-1], device=a.device) < k), exact.Vh)
    # The nearer the cut is to a tie, the less is known of the subspace.
    noise = whole * (1 + torch.where(last > 0, last / (last - after), 0.0))
    admitted = looks_like_tf32(error, e.reference[0], first, noise, e, n)
    kept = torch.where(admitted, between(off, S[..., :k], S[..., :k], e), off)
    left_out = kept[..., k:, k:].clone()
    kept[..., k:, k:] = 0
    excess = (size(left_out) - size(a - e.reference[0])).clamp_min(0)
    yield residual("part of A left out, beyond what must be / |A|", excess, whole, e, n)
    yield residual("|X - A| in X's row and column spaces / |A|", size(kept), whole, e, n)


def _pseudoinverse(A: Tensor, full_matrices: bool, rcond: float) -> Tensor:
    del full_matrices
    finite(A)
    U, S, Vh = torch.linalg.svd(A, full_matrices=False)
    cut = rcond * S.amax(-1, keepdim=True)
    if bool(((S - cut).abs() <= _AT_THE_CUT * cut).any()):
        raise ValueError("a singular value lies at the cut: nothing is demanded of the result")
    inverse = torch.where(cut < S, 1 / S, 0.0)
    X: Tensor = (Vh.mH * inverse.unsqueeze(-2)) @ U.mH
    return X


def _is_pseudoinverse(e: Evidence) -> Iterator[Claim]:
    """Moore and Penrose's conditions: of X, or of X less what TF32 may have done to the product."""
    a, X = given(e, "A"), wide(e.outputs[0])
    U, S, Vh = torch.linalg.svd(a)
    kept = torch.where(float(e.scalars["rcond"]) * S.amax(-1, keepdim=True) < S, S, 0.0)
    claims = tuple(_penrose(e, U, S, Vh, kept, X))
    if not all(claim.holds for claim in claims):
        inverse = torch.where(kept > 0, 1 / S, 0.0)
        expected, scale = e.reference[0], size(a) * size(X) ** 2
        off = beyond_tf32(X - expected, expected, (Vh.mH, inverse, U.mH), scale, e)
        claims = tuple(_penrose(e, U, S, Vh, kept, expected + Vh.mH @ off @ U.mH))
    yield from claims


def _penrose(
    e: Evidence, U: Tensor, S: Tensor, Vh: Tensor, kept: Tensor, X: Tensor
) -> Iterator[Claim]:
    """The four conditions, for A = U diag(S) Vh without the singular values that are cut off."""
    inner = S.shape[-1]
    expected = (U[..., :inner] * kept.unsqueeze(-2)) @ Vh[..., :inner, :]
    # What is cut off is known to the rounding of A over the gap between kept and cut.
    least = torch.where(kept > 0, S, torch.inf).amin(-1)
    most = torch.where(kept > 0, 0.0, S).amax(-1)
    slack = torch.where(most > 0, 1 + S[..., 0] / (least - most), 1.0)
    of_a, of_x = size(given(e, "A")), size(X)
    unit = slack * of_a * of_x
    AX, XA = expected @ X, X @ expected
    yield residual("|A X A - A| / (|A|^2 |X|)", size(AX @ expected - expected), unit * of_a, e)
    yield residual("|X A X - X| / (|A| |X|^2)", size(XA @ X - X), unit * of_x, e)
    yield residual("|A X - (A X)^T| / (|A| |X|)", size(AX - AX.mH), unit, e)
    yield residual("|X A - (X A)^T| / (|A| |X|)", size(XA - XA.mH), unit, e)


def _power(A: Tensor, k: float) -> Tensor:
    finite(A)
    values, V = torch.linalg.eigh(A)
    power: Tensor = (V * values.pow(k).unsqueeze(-2)) @ V.mH
    return power


def _is_power(e: Evidence) -> Iterator[Claim]:
    """The error that rounding A makes in its eigenvalues: n |A| eps at most in each of them."""
    a, got, expected = given(e, "A"), wide(e.outputs[0]), e.reference[0]
    k = float(e.scalars["k"])
    values, V = torch.linalg.eigh(a)
    power = values.pow(k)
    steepest = (k * values.pow(k - 1)).abs().amax(-1)
    allowed = steepest * size(a) + size(expected)
    # PyTorch's own `eig`, which does not use that A is symmetric, is 40 eps off at n = 65 on a GPU.
    n = max(a.shape[-1] // 16, 1)
    off = beyond_tf32(got - expected, expected, (V, power, V.mH), allowed, e, n)
    yield residual("|X - A^k| / (max|k w^(k-1)| |A| + |A^k|)", size(off), allowed, e, n)


# PyTorch finds eigenvalues of general matrices on the host: of larger ones a call takes seconds.
_ON_THE_HOST = ({"B": 4, "N": 64}, {"B": 1, "N": 128})

_task = partial(
    task,
    category="LinearAlgebra",
    dtypes=("float32",),
    extended_dtypes=DTYPES[1:],
    where={"batch": BATCH, "count": count_of_matrices},
)

TASKS: tuple[Task, ...] = (
    _task(
        "eig(A[*batch, N, N]: matrix(_matrix), _matrix='raw', _rank=2)",
        dims=_dims(0, 65, "N"),
        attributes={"_matrix": ("spread", "shuffled"), "_rank": BATCHES},
        outputs=tuple(
            Output(name=n, dtype="complex", compare="claims")
            for n in ("eigenvalues", "eigenvectors")
        ),
        reference=_eig,
        claims=_is_eig,
        description=f"""The eigenvalues and right eigenvectors of each general real matrix A. Two
            outputs, complex64 for a float32 input (complex128 for float64) even where all of them
            are real: the eigenvalues [N], each as often as its multiplicity and in any order, and a
            matrix [N, N] whose column j is an eigenvector of length 1 for eigenvalue j, with any
            phase. {_SAYS_BATCH} Judged by |A V - V diag(w)| <= 30 n eps |A|, by the lengths, and by
            the sums of the first three powers of the eigenvalues, which are the traces of A's
            powers. {HOW_A_FACTOR}""",
        flops="25*N**3*count",
        benchmark={"B": 2, "N": 16},
        perf=_ON_THE_HOST,
        promises=Promises(dtypes=DTYPES),
    ),
    _task(
        "low_rank_svd_approximation(A[*batch, M, N]: matrix(_matrix), k=2, full_matrices=True, "
        "_matrix='raw', _rank=2)",
        dims=_dims(1, 65, "M", "N"),
        attributes={
            "k": (1, 3, 5),
            "full_matrices": (False,),
            "_matrix": ("spread", "shuffled", "flat", "deficient"),
            "_rank": BATCHES,
        },
        constraints=("k <= min(M, N)",),
        outputs=(named("out"),),
        reference=_low_rank,
        claims=_is_low_rank,
        description=f"""The best approximation of rank at most k to each matrix A [M, N]: the k
            largest singular values with their vectors, U[:, :k] @ diag(S[:k]) @ Vh[:k]; of A's
            shape, 1 <= k <= min(M, N). `full_matrices` says which decomposition is computed on the
            way and does not change the result. {_SAYS_BATCH} Judged by its singular values beyond
            the first k (TF32 leaves X's rank at k), by the part of A that X leaves out (the root of
            the sum of squares of A's other singular values), and by X being A in X's own row and
            column spaces, each within 30 n eps |A|. {HOW_A_PRODUCT}""",
        flops="8*M*N*min(M, N)*count",
        benchmark={"B": 2, "M": 16, "N": 16},
        perf=tuple({"B": 4, "M": n, "N": n} for n in (128, 512)),
        promises=Promises(dtypes=DTYPES, out=True),
    ),
    _task(
        "matrix_power_eig(A[*batch, N, N]: spd(_matrix), k=2.0, _matrix='scaled', _rank=2)",
        dims=_dims(1, 65, "N"),
        attributes={
            "k": (0.5, -1.0, 3.0, 0.0, -0.5),
            "_matrix": ("spread",),
            "_rank": BATCHES,
        },
        outputs=(named("out"),),
        reference=_power,
        claims=_is_power,
        description=f"""The power A^k of each symmetric positive definite matrix A for a real
            exponent k, through its eigendecomposition: V diag(w^k) V^T with A = V diag(w) V^T. The
            result is real, in A's dtype and shape; k = 0 gives the identity and k = -1 the inverse.
            {_SAYS_BATCH} Judged by |X - A^k| <= 30 max(1, n // 16) eps
            (max|k w^(k-1)| |A| + |A^k|), which is what rounding A costs. {HOW_A_PRODUCT}""",
        flops="12*N**3*count",
        benchmark={"B": 2, "N": 16},
        perf=_ON_THE_HOST,
        promises=Promises(dtypes=DTYPES, out=True),
    ),
    _task(
        "pseudoinverse_svd(A[*batch, M, N]: matrix(_matrix), full_matrices=True, rcond=1e-15, "
        "_matrix='shuffled', _rank=2)",
        dims=_dims(1, 65, "M", "N"),
        attributes={
            "full_matrices": (False,),
            "rcond": (0.3, 0.03),
            "_matrix": ("spread", "flat"),
            "_rank": BATCHES,
        },
        outputs=(named("out"),),
        reference=_pseudoinverse,
        claims=_is_pseudoinverse,
        description=f"""The Moore-Penrose pseudoinverse X [N, M] of each matrix A [M, N] through its
            singular value decomposition A = U diag(S) Vh: Vh.T @ diag(1/S) @ U.T, where a singular
            value at or below rcond times the largest of its matrix counts as 0 and its inverse is
            0. A may be square, tall or wide. `full_matrices` says which decomposition is computed
            on the way and does not change the result. {_SAYS_BATCH} Judged by the four conditions
            A X A = A, X A X = X, A X and X A symmetric, for A without what is cut off, within 30
            eps of |A|^2 |X|, |A| |X|^2 and |A| |X| (more where the smallest kept singular value is
            near the largest that is cut off). Matrices with a singular value within 1% of the cut
            are not judged. {HOW_A_PRODUCT}""",
        flops="10*M*N*min(M, N)*count",
        benchmark={"B": 2, "M": 16, "N": 16},
        perf=tuple({"B": 4, "M": n, "N": n} for n in (128, 512)),
        promises=Promises(dtypes=DTYPES, out=True),
    ),
    _task(
        "svd(A[*batch, M, N]: matrix(_matrix), full_matrices=True, _matrix='raw', _rank=2)",
        dims=_dims(1, 65, "M", "N"),
        attributes={
            "full_matrices": (False,),
            "_matrix": ("spread", "shuffled"),
            "_rank": BATCHES,
        },
        outputs=(named("U"), Output(name="S", dtype="real", compare="claims"), named("Vh")),
        reference=_svd,
        claims=_is_svd,
        description=f"""The singular value decomposition of each matrix A [M, N], which may be
            singular: A = U[:, :K] @ diag(S) @ Vh[:K] with K = min(M, N). Three outputs: U [M, M], S
            [K], not negative and in descending order, and Vh [N, N]; with `full_matrices=False` U
            [M, K] and Vh [K, N]. U's columns and Vh's rows are orthonormal, those for a singular
            value of 0 too; their signs, and bases for equal singular values, are free.
            {_SAYS_BATCH} Judged by |A - U S Vh| and by S, each within 30 n eps |A|, and by |Q^T Q -
            I| <= 30 n eps. {HOW_A_FACTOR}""",
        flops="8*M*N*min(M, N)*count",
        benchmark={"B": 2, "M": 16, "N": 16},
        # On a GPU PyTorch's factors of larger ones are not as orthogonal as that.
        perf=tuple({"B": 4, "M": n, "N": n, "_matrix": "shuffled"} for n in (64, 128)),
        promises=Promises(dtypes=DTYPES),
    ),
)
