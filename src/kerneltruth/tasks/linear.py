"""Judge linear algebra, if the right answer is not unique or not well-conditioned.

As in LAPACK's own tests: the property that a factorization or a solution must have is computed in
float64, and its residual is compared with the rounding of the working dtype. That is fair to every
backward stable algorithm, for any signs, order or pivots, and for any condition number. Norms are
Frobenius norms; each matrix of a batch is judged by itself.

TF32 is allowed if a task's formula ends in a matrix product of factors, or has one of a factor and
the right side, as for any other product. Rounding the factors of U diag(s) V^T affects the product
between u_i and v_j in proportion to s_i and s_j, so errors are taken in the bases of the exact
factors: a missing small singular value is then as visible as a large one. Results without such a
product (factors themselves, and solutions by substitution) must be accurate in the working dtype.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from kerneltruth.tasks.arguments import Output
from kerneltruth.tasks.claims import Claim, Evidence
from kerneltruth.tasks.expressions import Variants

# LAPACK's usual threshold, in units of rounding.
THRESHOLD = 30.0
# A float64 result below this many roundings of its matrix is noise around 0.
_NOISE = 100.0
# The most that rounding an element to TF32 takes off, and how often one of U or V is rounded: U @
# diag(S) @ Vh rounds U, S, their product and Vh, which is twice for each on average.
_TF32 = 2.0**-10
_CUTS = 2
# The rounding errors of many terms add up like independent ones: the standard deviation is half an
# error times the root of the sum of their squares, so this is six of them.
_DEVIATIONS = 3
# Singular values closer than this, relative to the largest, count as equal.
_EQUAL = 1e-3

# The dims before a matrix's own: none, one or two.
BATCH = Variants("_rank", {2: "", 3: "B", 4: "2, B"})
BATCHES = (3, 4)
# As the prompts have it: float, double, cfloat and cdouble.
DTYPES = ("float32", "float64", "complex64", "complex128")


def count_of_matrices(B: int, _rank: int) -> int:
    """Return how many matrices stand in `BATCH`."""
    return {2: 1, 3: B}.get(_rank, 2 * B)


# U, s and Vh.
Factors = tuple[Tensor, Tensor, Tensor]


def form_unless_unpivoted(_matrix: str, pivot: bool) -> str:
    """Return the form of a matrix to be factorized; without pivoting, one that needs none."""
    return _matrix if pivot else "ordered"


def form_of_indefinite(_matrix: str, hermitian: bool) -> str:
    """Return the form of an indefinite matrix, which is Hermitian or only symmetric."""
    return _matrix if hermitian else f"{_matrix} symmetric"


JUDGED = Output(compare="claims")
HOW_A_SOLUTION = """The result is judged by its backward error: |B - A X| of each column must be at
    most 30 roundings of |A| |X| + |B| (Frobenius norms), which a stable algorithm in the input's
    dtype keeps whatever the condition of A. TF32 is not admitted: the factorization is followed by
    substitutions and not by a product, and errors of TF32's size would hide a missing pivot. Inputs
    that are not finite are not judged."""
HOW_LEAST_SQUARES = """Each column is judged by its backward error: the least change of A, and of b
    in proportion, that makes x right must be at most 30 roundings of |A| (Frobenius norms; in the
    input's dtype). With r = b - A x and l^2 = |x|^2 + |b|^2/|A|^2 it is
    |(l^2 A^T A + |r|^2 I)^(-1/2) A^T r|, up to a small factor. For float32 TF32 is admitted in the
    product Q^T b, but neither in the decomposition nor in the substitution: each element of Q^T b
    may be off by 2^-9 |Q|^T |b| more, and x by what follows from that. Inputs that are not finite
    are not judged."""
HOW_A_PRODUCT = """Norms are Frobenius norms, n is the larger size of A and eps the rounding of the
    input's dtype. For float32 TF32 is admitted in the product of the factors, but not in the
    decomposition: between its singular vectors i and j the result may be off by 2^-9 (s_i + s_j)
    more, where s are its singular values, so that a small one that is missing or wrong is no error
    of TF32. Matrices that are not finite are not judged."""
HOW_A_FACTOR = """Norms are Frobenius norms, n is the larger size of A and eps the rounding of the
    input's dtype. TF32 is not admitted: the factors are the result, and no product follows.
    Matrices that are not finite are not judged."""


def named(name: str) -> Output:
    """Return an output that claims judge."""
    return Output(name=name, compare="claims")


def given(evidence: Evidence, name: str) -> Tensor:
    """Return an input that is always present."""
    tensor = evidence.inputs[name]
    assert tensor is not None
    return tensor


def finite(*tensors: Tensor) -> None:
    """Refuse matrices about which nothing can be claimed.

    Raises:
        ValueError: one holds NaN or an infinity.
    """
    if not all(bool(t.isfinite().all()) for t in tensors):
        raise ValueError("the input is not finite: nothing is demanded of the result")


def wide(tensor: Tensor) -> Tensor:
    """Convert a result to double precision."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def size(a: Tensor) -> Tensor:
    """Return the norm of each matrix."""
    norm: Tensor = torch.linalg.vector_norm(a, dim=(-2, -1))
    return norm


def columns(x: Tensor) -> Tensor:
    """Return the norm of each column."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=-2)
    return norm


def worst(error: Tensor, scale: Tensor) -> float:
    """Return the largest ratio; an error where none is allowed is infinite."""
    if error.numel() == 0:
        return 0.0
    nothing = torch.where(error == 0, 0.0, math.inf)
    return float(torch.where(scale > 0, error / scale, nothing).amax())


def residual(name: str, error: Tensor, scale: Tensor, evidence: Evidence, n: int = 1) -> Claim:
    """Claim that an error is at most 30 n roundings of a scale."""
    value = worst(error, scale * (n * evidence.eps))
    return Claim(f"{name}, in units of {'n ' if n > 1 else ''}eps", value, THRESHOLD)


def beyond_tf32(
    error: Tensor, expected: Tensor, factors: Factors, scale: Tensor, evidence: Evidence, n: int = 1
) -> Tensor:
    """Return the error of a product U diag(s) Vh between U's and V's columns, less TF32's part.

    Arguments are those of `looks_like_tf32`. If that is False nothing is subtracted.
    """
    U, s, Vh = factors
    off = U.mH @ error @ Vh.mH
    admitted = looks_like_tf32(error, expected, factors, scale, evidence, n)
    return torch.where(admitted, between(off, s, s, evidence), off)


def looks_like_tf32(
    error: Tensor, expected: Tensor, factors: Factors, scale: Tensor, evidence: Evidence, n: int = 1
) -> Tensor:
    """Return whether TF32's rounding of many terms explains all errors: [..., 1, 1].

    Factors in bfloat16 fail this.

    Args:
        error: of each returned element.
        expected: the product.
        factors: U and Vh, square and orthogonal, and s between them.
        scale: 30 n roundings of it are always allowed.
        evidence: defines a rounding.
        n: see `scale`.
    """
    U, s, Vh = factors
    inner = s.shape[-1]
    # Columns of equal singular values form an arbitrary basis: judge them together.
    equal = (s.unsqueeze(-1) - s.unsqueeze(-2)).abs() <= _EQUAL * s.amax(-1)[..., None, None]
    same = equal.to(s.dtype)
    shares = U[..., :inner].abs().square() @ same * (s.square() / same.sum(-1)).unsqueeze(-2)
    terms = (shares @ (same @ Vh[..., :inner, :].abs().square())).sqrt()
    share = THRESHOLD * n * evidence.eps / math.sqrt(error.shape[-2] * error.shape[-1])
    likely = _TF32 * (_CUTS * expected.abs() + _DEVIATIONS * terms) + share * scale[..., None, None]
    return (error.abs() <= likely).flatten(-2).all(-1)[..., None, None]


def between(off: Tensor, left: Tensor, right: Tensor, evidence: Evidence) -> Tensor:
    """Return an error between singular vectors, less what TF32 may do to their factors.

    Args:
        off: U^H error V.
        left: the singular value of each row, 0 for rows beyond; `right` that of each column.
        right: see `left`.
        evidence: says whether TF32 is allowed.
    """
    rows, columns = off.shape[-2:]
    scale = _padded(left, rows).unsqueeze(-1) + _padded(right, columns).unsqueeze(-2)
    return _less_cuts(off, _CUTS * scale, evidence)


def _less_cuts(error: Tensor, scale: Tensor, evidence: Evidence) -> Tensor:
    """Return an error less what rounding each element of a scale once may do."""
    if not _in_tf32(evidence):
        return error
    return error.sgn() * (error.abs() - _TF32 * scale).clamp_min(0)


def _in_tf32(evidence: Evidence) -> bool:
    return evidence.tf32 and evidence.dtype == "float32"


def _padded(s: Tensor, n: int) -> Tensor:
    """Pad singular values with zeros to n."""
    return torch.nn.functional.pad(s, (0, n - s.shape[-1]))


def orthonormal(name: str, q: Tensor, evidence: Evidence) -> Claim:
    """Claim that the columns of a matrix are orthonormal."""
    rows, count = q.shape[-2:]
    one = torch.eye(count, dtype=q.dtype, device=q.device)
    error = size(q.mH @ q - one)
    return residual(f"|{name}^T {name} - I|", error, torch.ones_like(error), evidence, max(rows, 2))


def triangular(name: str, x: Tensor, *, upper: bool) -> Claim:
    """Claim that the other triangle is all 0."""
    other = x.tril(-1) if upper else x.triu(1)
    where = "below" if upper else "above"
    return Claim(f"{name} {where} its diagonal", _largest(other), 0.0)


def exactly(name: str, x: Tensor, expected: Tensor | float) -> Claim:
    """Claim that every element is exactly the expected one."""
    return Claim(name, _largest(x - expected), 0.0)


def _largest(x: Tensor) -> float:
    return float(x.abs().amax()) if x.numel() else 0.0


def solution(evidence: Evidence, a: Tensor, x: Tensor, b: Tensor, scale: Tensor) -> Claim:
    """Claim that each column of x solves a x = b; `scale` is the norm of a for its rounding.

    Results around the smallest normal number may be flushed.
    """
    vector = x.ndim == a.ndim - 1
    x, b = (t.unsqueeze(-1) if vector else t for t in (x, b))
    of_a = scale.unsqueeze(-1)
    allowed = of_a * columns(x) + columns(b) + flushed(evidence, a.shape[-1]) * (1 + of_a)
    return residual("|b - A x| / (|A| |x| + |b|)", columns(b - a @ x), allowed, evidence)


def least_squares(e: Evidence) -> Iterator[Claim]:
    """Return each column's backward error: of x or, if that is large, of x less TF32's part."""
    a, b, x, expected = given(e, "A"), given(e, "b"), wide(e.outputs[0]), e.reference[0]
    if b.ndim == a.ndim - 1:
        b, x, expected = (t.unsqueeze(-1) for t in (b, x, expected))
    claim = _least_squares(e, a, b, x)
    if not claim.holds:
        Q, R = torch.linalg.qr(a)
        off = _less_cuts(R @ (x - expected), 2 * Q.mT.abs() @ b.abs(), e)
        nearer = expected + torch.linalg.solve_triangular(R, off, upper=True)
        claim = _least_squares(e, a, b, nearer)
    yield claim


def _least_squares(e: Evidence, a: Tensor, b: Tensor, x: Tensor) -> Claim:
    """Estimate how much A and b must change for x to be right (Karlson, Walden and Sun)."""
    U, S, _ = torch.linalg.svd(a, full_matrices=False)
    left, of_a, s = b - a @ x, size(a).unsqueeze(-1), S.unsqueeze(-1)
    length = torch.hypot(columns(x), columns(b) / of_a)
    scale = torch.hypot(s * length.unsqueeze(-2), columns(left).unsqueeze(-2))
    change = columns(s * (U.mH @ left) / scale.clamp_min(torch.finfo(s.dtype).tiny))
    allowed = of_a * length + flushed(e, a.shape[-2]) * (1 + of_a)
    return residual("change that makes x right / |A|", change * length, allowed, e)


def flushed(evidence: Evidence, n: int) -> float:
    """Return what n results may lose by flushing to 0, in units of eps."""
    return n * torch.finfo(getattr(torch, evidence.dtype)).tiny / evidence.eps


def without_noise(x: Tensor, a: Tensor) -> Tensor:
    """Replace mere rounding in a float64 factor by 0, which tells decoys apart.

    Args:
        x: the factor, of one matrix or a batch of them.
        a: the matrices that were factored.
    """
    if a.numel() == 0 or a.dtype != torch.float64:
        return x
    level = _NOISE * max(a.shape[-2:]) * torch.finfo(a.dtype).eps * size(a)
    while level.ndim < x.ndim:
        level = level.unsqueeze(-1)
    return torch.where(x.abs() <= level, torch.zeros_like(x), x)
