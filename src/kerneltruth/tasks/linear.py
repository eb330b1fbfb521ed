"""Judging linear algebra, where the right answer is not unique or not well-conditioned.

As LAPACK's own tests do it: what a factorization or a solution promises of the matrix is computed
in float64 and its residual compared with the rounding of the working dtype. That is fair to every
algorithm that is backward stable, whatever signs, order or pivots it chooses, and however badly
conditioned the matrix is. Norms are Frobenius norms; each matrix of a batch is judged by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from kerneltruth.tasks.arguments import Output
from kerneltruth.tasks.contract import Claim, Evidence

# LAPACK's usual threshold, in units of rounding.
THRESHOLD = 30.0
# A float64 result below so many roundings of its matrix is a 0 that came out as noise.
_NOISE = 100.0

JUDGED = Output(compare="contract")
HOW_A_SOLUTION = """The result is judged by its backward error: |B - A X| of each column must be at
    most 30 roundings of |A| |X| + |B| (Frobenius norms), which a stable algorithm in the input's
    dtype keeps whatever the condition of A; TF32 does not. Inputs that are not finite are not
    judged."""
HOW_LEAST_SQUARES = """For each column A^T (b - A x) must be at most 30 roundings of
    |A| (|A| |x| + |b|), and the error of x at most 30 roundings of k (|x| + |b|/|A| + k |r|/|A|),
    where r = b - A x, k = |A|/s is A's condition and s its smallest singular value (Frobenius
    norms; in the input's dtype, not TF32). Inputs that are not finite are not judged."""
HOW_A_FACTOR = """Norms are Frobenius norms, n is the larger size of A and eps the rounding of the
    input's dtype: TF32 is not enough. Matrices that are not finite are not judged."""


def named(name: str) -> Output:
    """An output that the contract judges."""
    return Output(name=name, compare="contract")


def given(evidence: Evidence, name: str) -> Tensor:
    """An input that is always there."""
    tensor = evidence.inputs[name]
    assert tensor is not None
    return tensor


def finite(*tensors: Tensor) -> None:
    """Refuse matrices of which nothing can be demanded.

    Raises:
        ValueError: one holds NaN or an infinity.
    """
    if not all(bool(t.isfinite().all()) for t in tensors):
        raise ValueError("the input is not finite: nothing is demanded of the result")


def wide(tensor: Tensor) -> Tensor:
    """A result in double precision."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def size(a: Tensor) -> Tensor:
    """The norm of each matrix."""
    norm: Tensor = torch.linalg.vector_norm(a, dim=(-2, -1))
    return norm


def columns(x: Tensor) -> Tensor:
    """The norm of each column."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=-2)
    return norm


def worst(error: Tensor, scale: Tensor) -> float:
    """The largest ratio; an error where none is allowed is infinite."""
    if error.numel() == 0:
        return 0.0
    nothing = torch.where(error == 0, 0.0, math.inf)
    return float(torch.where(scale > 0, error / scale, nothing).amax())


def residual(name: str, error: Tensor, scale: Tensor, evidence: Evidence, n: int = 1) -> Claim:
    """That an error is at most 30 n roundings of a scale."""
    value = worst(error, scale * (n * evidence.eps))
    return Claim(f"{name}, in units of {'n ' if n > 1 else ''}eps", value, THRESHOLD)


def orthonormal(name: str, q: Tensor, evidence: Evidence) -> Claim:
    """That the columns of a matrix are orthogonal to one another and of length 1."""
    rows, count = q.shape[-2:]
    one = torch.eye(count, dtype=q.dtype, device=q.device)
    error = size(q.mH @ q - one)
    return residual(f"|{name}^T {name} - I|", error, torch.ones_like(error), evidence, max(rows, 2))


def triangular(name: str, x: Tensor, *, upper: bool) -> Claim:
    """That the other triangle is all 0."""
    other = x.tril(-1) if upper else x.triu(1)
    where = "below" if upper else "above"
    return Claim(f"{name} {where} its diagonal", _largest(other), 0.0)


def exactly(name: str, x: Tensor, due: Tensor | float) -> Claim:
    """That every element is what is due, with no rounding."""
    return Claim(name, _largest(x - due), 0.0)


def _largest(x: Tensor) -> float:
    return float(x.abs().amax()) if x.numel() else 0.0


def solution(evidence: Evidence, a: Tensor, x: Tensor, b: Tensor, scale: Tensor) -> Claim:
    """That each column of x solves a x = b; `scale` is the norm of a that rounding goes with.

    Results around the smallest normal number may be flushed.
    """
    vector = x.ndim == a.ndim - 1
    x, b = (t.unsqueeze(-1) if vector else t for t in (x, b))
    of_a = scale.unsqueeze(-1)
    allowed = of_a * columns(x) + columns(b) + flushed(evidence, a.shape[-1]) * (1 + of_a)
    return residual("|b - A x| / (|A| |x| + |b|)", columns(b - a @ x), allowed, evidence)


def least_squares(e: Evidence) -> Iterator[Claim]:
    """What is left over is orthogonal to A's columns, and x is as near as A's condition allows."""
    a, b, x, due = given(e, "A"), given(e, "b"), wide(e.outputs[0]), e.reference[0]
    if b.ndim == a.ndim - 1:
        b, x, due = (t.unsqueeze(-1) for t in (b, x, due))
    left = b - a @ x
    of_a = size(a).unsqueeze(-1)
    tiny = flushed(e, a.shape[-2])
    allowed = of_a * (of_a * columns(x) + columns(b)) + tiny * (1 + of_a) ** 2
    name = "|A^T (b - A x)| / (|A| (|A| |x| + |b|))"
    yield residual(name, columns(a.mH @ left), allowed, e)
    least = torch.linalg.svdvals(a)[..., -1:]
    condition = of_a / least
    best = columns(b - a @ due)
    allowed = condition * (columns(due) + (columns(b) + condition * best) / of_a) + tiny / least
    yield residual("error / what rounding A may do to it", columns(x - due), allowed, e)


def flushed(evidence: Evidence, n: int) -> float:
    """What n results may lose that are flushed to 0, in units of eps."""
    return n * torch.finfo(getattr(torch, evidence.dtype)).tiny / evidence.eps


def without_noise(x: Tensor, a: Tensor) -> Tensor:
    """A float64 factor with 0 in place of what is only rounding: decoys are told by it.

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
