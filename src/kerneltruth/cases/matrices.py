"""Matrices with a structure: what solvers and decompositions may be given.

They are made of elementwise steps alone, so that every device and version gives the same bits, and
by diagonal dominance, so that their conditioning is known without a decomposition.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kerneltruth.cases.philox import Stream
from kerneltruth.errors import InternalError


def matrix(kind: str, x: Tensor, rng: Stream) -> Tensor:
    """The matrix of a kind over the last two dims, from values in [-1, 1]; NaN stays.

    `symmetric` keeps size and spectrum of the values. `spd` and `invertible` have condition
    numbers up to a few hundred; rows of `invertible` are shuffled, so that pivoting matters.
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise InternalError(f"kind {kind!r} needs square matrices, got {tuple(x.shape)}")
    n = x.shape[-1]
    diagonal = torch.eye(n, dtype=torch.bool, device=x.device)
    if kind == "symmetric":
        return (x + x.mT) / 2
    if kind == "lower":
        heavy = torch.where(x < 0, -1.0, 1.0) + x
        return torch.where(diagonal, heavy, x.tril(-1) * (2.0 / max(n, 2)))
    dominant = torch.where(diagonal, x.abs() + 1, x * (1.0 / max(n, 1)))
    if kind == "spd":
        dominant = (dominant + dominant.mT) / 2
        scale = _powers(x, rng)
        return dominant * scale.unsqueeze(-1) * scale.unsqueeze(-2)
    shuffled = dominant.gather(-2, _orders(x, rng).unsqueeze(-1).expand(x.shape))
    return shuffled * _powers(x, rng).unsqueeze(-1)


def _powers(x: Tensor, rng: Stream) -> Tensor:
    """A power of two from 1/2 to 2 for each row: exact, and it spreads the spectrum."""
    exponents = rng.integers(x[..., 0].numel(), -1, 2).reshape(x.shape[:-1])
    return torch.exp2(exponents.to(x.dtype))


def _orders(x: Tensor, rng: Stream) -> Tensor:
    """A permutation of the rows for each matrix."""
    words = rng.words(x[..., 0].numel()).reshape(x.shape[:-1])
    return words.argsort(dim=-1, stable=True)
