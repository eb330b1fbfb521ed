"""Make matrices with a structure, for solvers and decompositions.

They use elementwise steps alone, so every device and version gives the same bits. Diagonal
dominance makes their conditioning known without a decomposition.

A kind may have several forms, the first of which is meant where none is named:

- `matrix`: `raw`, the values as they are, perhaps singular; `shuffled`, well-conditioned, with rows
  in random order, so that pivoting matters; `ordered`, well-conditioned without a need of pivoting;
  `near_one`, like `shuffled`, but with a determinant near 1 or -1 at any size; `spread`, dense,
  with singular values over ten powers of two, and `steep` over sixteen; `flat`, dense, where each
  is 1, 3/2 or 2 and most come several times, so that none is too small to be missed; `deficient`,
  of half the possible rank and flat otherwise: exactly, as rows come twice.
- `spd` and `indefinite`: `scaled`, with condition numbers up to a few hundred, and `spread`.
  Complex ones are Hermitian, unless the form of an `indefinite` one ends in `symmetric`.
- `triangular`: `lower` and `upper`.
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from kerneltruth.cases.philox import Stream
from kerneltruth.errors import InternalError

FORMS: dict[str, tuple[str, ...]] = {
    "symmetric": ("plain",),
    "lower": ("lower",),
    "invertible": ("shuffled",),
    "spd": ("scaled", "spread"),
    "indefinite": ("scaled", "spread", "scaled symmetric", "spread symmetric"),
    "triangular": ("lower", "upper"),
    "matrix": ("raw", "shuffled", "ordered", "spread", "near_one", "steep", "flat", "deficient"),
}
_SYMMETRIC = " symmetric"
_UNITS = ((0.6, 0.8), (-0.8, 0.6), (0.8, -0.6), (0.28, 0.96), (-0.96, -0.28), (1.0, 0.0))
# Powers of two over which `spread` and `steep` put singular values.
SPREAD = 10
STEEP = 16


def matrix(kind: str, x: Tensor, rng: Stream, form: str | None = None) -> Tensor:
    """Make a matrix of a kind over the last two dims, from values in [-1, 1]; NaN stays.

    `symmetric` keeps size and spectrum of the values. `spd` and `invertible` have condition
    numbers up to a few hundred; rows of `invertible` are shuffled, so that pivoting matters.
    """
    form = FORMS[kind][0] if form is None else form
    if form not in FORMS[kind]:
        raise InternalError(f"kind {kind!r} has no form {form!r}")
    form = form.removesuffix(_SYMMETRIC)
    if kind == "matrix":
        return _rectangular(x, rng, form)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise InternalError(f"kind {kind!r} needs square matrices, got {tuple(x.shape)}")
    if kind == "symmetric":
        return (x + x.mT) / 2
    if kind in ("lower", "triangular"):
        return _lower(x.mT).mT if form == "upper" else _lower(x)
    if kind == "invertible":
        return _rectangular(x, rng, form)
    half = _in_blocks(x, rng) if kind == "indefinite" else _symmetric(_dominant(x))
    if form == "spread":
        scale = _graded(x.shape[-1], SPREAD // 2, x)
        mixed = _mixed(_mixed(half * scale.unsqueeze(-1) * scale, -2), -1)
        return _symmetric(mixed)
    scale = _powers(x, rng)
    return half * scale.unsqueeze(-1) * scale.unsqueeze(-2)


def turned(kind: str, a: Tensor, rng: Stream, form: str | None = None) -> Tensor:
    """Make a complex matrix from a real one of that kind: D A E with unitary diagonal D and E.

    Singular values, dominance and triangles are the real matrix's. E is D's conjugate, which keeps
    the eigenvalues and makes a symmetric matrix Hermitian, except for the kind `matrix`, and D
    itself where the form says `symmetric`.
    """
    real, imaginary = _directions(a.shape[:-1], rng)
    other = real, -imaginary
    if kind == "matrix":
        other = _directions((*a.shape[:-2], a.shape[-1]), rng)
    elif form is not None and form.endswith(_SYMMETRIC):
        other = real, imaginary
    rows = real.unsqueeze(-1), imaginary.unsqueeze(-1)
    columns = other[0].unsqueeze(-2), other[1].unsqueeze(-2)
    both = rows[0] * columns[0], rows[1] * columns[1]
    mixed = rows[0] * columns[1], rows[1] * columns[0]
    wide = a.double()
    parts = wide * (both[0] - both[1]), wide * (mixed[0] + mixed[1])
    return torch.complex(*(part.to(a.dtype) for part in parts))


def _directions(shape: tuple[int, ...], rng: Stream) -> tuple[Tensor, Tensor]:
    """Return real and imaginary parts of complex numbers of length 1."""
    which = rng.integers(prod(shape), 0, len(_UNITS))
    table = torch.tensor(_UNITS, dtype=torch.float64, device=rng.device)
    chosen = table[which].reshape(*shape, 2)
    return chosen[..., 0], chosen[..., 1]


def _rectangular(x: Tensor, rng: Stream, form: str) -> Tensor:
    if form == "raw":
        return x
    if form in ("flat", "deficient"):
        return torch.where(x.isnan(), x, _flat(x, rng, halved=form == "deficient"))
    dominant = _dominant(x)
    if form == "ordered":
        return dominant * _powers(x, rng).unsqueeze(-1)
    order = _orders(x, rng).unsqueeze(-1).expand(x.shape)
    if form == "near_one":
        return torch.where(_diagonal(x), 1 + x * 2.0**-6, dominant).gather(-2, order)
    if form == "shuffled":
        return dominant.gather(-2, order) * _powers(x, rng).unsqueeze(-1)
    rows, columns = x.shape[-2:]
    powers = STEEP if form == "steep" else SPREAD
    if rows < columns:
        graded = dominant * _graded(rows, powers, x).unsqueeze(-1)
    else:
        graded = dominant * _graded(columns, powers, x)
    return _mixed(_mixed(graded, -2), -1).gather(-2, order)


def _flat(x: Tensor, rng: Stream, *, halved: bool) -> Tensor:
    """Put a diagonal between two reflections, I - 2 v v^T / v^T v, and shuffle its rows.

    All sums are of whole numbers or halves, so they are exact in any order.
    """
    rows, columns = x.shape[-2:]
    if halved:
        rank = (min(rows, columns) + 1) // 2
        times = torch.arange(rows, device=x.device) % rank
        flat = _flat(x[..., :rank, :], rng, halved=False).index_select(-2, times)
    else:
        v, w = _whole(x[..., :, :1]), _whole(x[..., :1, :])
        at = torch.arange(max(rows, columns), device=x.device)
        values = (1 + at.div(2, rounding_mode="floor") % 3 * 0.5).to(x.dtype)
        d = torch.where(_diagonal(x), values[:columns], 0.0)
        of_rows, of_columns = (d * v).sum(-2, keepdim=True), (d * w).sum(-1, keepdim=True)
        by_v = 2 / (v * v).sum(-2, keepdim=True)
        by_w = 2 / (w * w).sum(-1, keepdim=True)
        both = (of_rows * w).sum(-1, keepdim=True) * by_v * by_w
        flat = d - by_v * v * of_rows - of_columns * (by_w * w) + both * v * w
    order = _orders(x, rng).unsqueeze(-1).expand(x.shape)
    return flat.gather(-2, order)


def _whole(x: Tensor) -> Tensor:
    """Turn numbers from -1 to 1, or NaN, into whole ones from -9 to 9 without 0."""
    x = torch.nan_to_num(x)
    return torch.where(x < 0, -1.0, 1.0) + (x * 8).trunc()


def _diagonal(x: Tensor) -> Tensor:
    return torch.eye(x.shape[-2], x.shape[-1], dtype=torch.bool, device=x.device)


def _dominant(x: Tensor) -> Tensor:
    """From 1 to 2 on the diagonal; the other elements of a row add up to less than 1."""
    return torch.where(_diagonal(x), x.abs() + 1, x * (1.0 / max(x.shape[-1], 1)))


def _lower(x: Tensor) -> Tensor:
    heavy = torch.where(x < 0, -1.0, 1.0) + x
    return torch.where(_diagonal(x), heavy, x.tril(-1) * (2.0 / max(x.shape[-1], 2)))


def _symmetric(x: Tensor) -> Tensor:
    return (x + x.mT) / 2


def _in_blocks(x: Tensor, rng: Stream) -> Tensor:
    """Symmetric, dominated by blocks of two that are indefinite, some with a diagonal of 0.

    A block with a diagonal of 0 has no pivot of its own. Rows and columns are shuffled alike.
    """
    n = x.shape[-1]
    at = torch.arange(n, device=x.device)
    partner = torch.where((at ^ 1) < n, at ^ 1, at)
    coins = rng.coins(x[..., 0].numel()).reshape(x.shape[:-1])
    hollow = coins.index_select(-1, at & ~1) & (partner != at)
    heavy = x.diagonal(dim1=-2, dim2=-1).abs().index_select(-1, at & ~1) + 1
    signs = torch.where(at & 1 == 0, 1.0, -1.0).to(x.dtype)
    on_diagonal = torch.where(hollow, 0.0, heavy * signs)
    beside = torch.where(hollow, heavy, 0.0)
    pairs = at.unsqueeze(-1) == partner
    same_block = pairs | _diagonal(x)
    light = torch.where(same_block, 0.0, _symmetric(x) * (1.0 / max(n, 1)))
    blocks = light + torch.diag_embed(on_diagonal)
    blocks = torch.where(pairs & ~_diagonal(x), beside.unsqueeze(-1), blocks)
    order = _orders(x, rng)
    rows = blocks.gather(-2, order.unsqueeze(-1).expand(x.shape))
    return rows.gather(-1, order.unsqueeze(-2).expand(x.shape))


def _graded(n: int, powers: int, x: Tensor) -> Tensor:
    """Powers of two that fall evenly by a factor of 2**powers, with 1 in the middle."""
    at = torch.arange(n, device=x.device)
    exponents = powers // 2 - (at * (powers + 1)).div(max(n, 1), rounding_mode="floor")
    return torch.exp2(exponents.to(x.dtype))


def _mixed(x: Tensor, dim: int) -> Tensor:
    """Add every element of a dim to all others with signs.

    This is nearly orthogonal, so it keeps the conditioning; and no scaling of rows undoes it.
    """
    n = x.shape[dim]
    at = torch.arange(n, device=x.device)
    shape = [1] * x.ndim
    shape[dim] = n
    stride = 1
    while stride < n:
        paired = (at ^ stride) < n
        other = x.index_select(dim, torch.where(paired, at ^ stride, at))
        signs = torch.where(at & stride == 0, 1.0, -1.0).to(x.dtype).reshape(shape)
        x = torch.where(paired.reshape(shape), other + signs * x, x * 1.5) * 0.75
        stride *= 2
    return x


def _powers(x: Tensor, rng: Stream) -> Tensor:
    """Return a power of two from 1/2 to 2 for each row: exact, and it spreads the spectrum."""
    exponents = rng.integers(x[..., 0].numel(), -1, 2).reshape(x.shape[:-1])
    return torch.exp2(exponents.to(x.dtype))


def _orders(x: Tensor, rng: Stream) -> Tensor:
    """Return a permutation of the rows for each matrix."""
    words = rng.words(x[..., 0].numel()).reshape(x.shape[:-1])
    return words.argsort(dim=-1, stable=True)
