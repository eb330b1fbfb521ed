"""Draw where an output is wrong, as a small picture of characters. Pure over tensors."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from kerneltruth.documents.records import ErrorMap
from kerneltruth.explain.localize.evidence import Values

MOST_DOWN = 32
MOST_ACROSS = 64


def map_of(values: Values) -> ErrorMap:
    """Draw the map of an output whose wrong elements are known.

    All dims but the last are folded into rows. If there are more rows or columns than cells,
    several share a cell.
    """
    wrong = values.wrong
    across = wrong.shape[-1] if wrong.dim() else 1
    folded = wrong.reshape(-1, across) if across else wrong.reshape(0, 1)
    down, columns = parts_of(folded.shape[0], MOST_DOWN), parts_of(folded.shape[1], MOST_ACROSS)
    cells = _summed(_summed(folded.to(torch.float64), down, 0), columns, 1)
    counts = torch.outer(_lengths(down), _lengths(columns))
    return ErrorMap(
        output=values.name,
        shape=tuple(wrong.shape),
        lines=tuple("".join(map(_mark, *pair)) for pair in zip(cells, counts, strict=True)),
    )


def parts_of(size: int, most: int) -> list[int]:
    """Return where each equal part begins, at most `most` of them, and the last one ends."""
    parts = min(size, most)
    return [size * i // parts for i in range(parts + 1)] if parts else [0]


def _lengths(parts: list[int]) -> Tensor:
    return torch.tensor(parts, dtype=torch.float64).diff()


def _summed(values: Tensor, parts: list[int], dim: int) -> Tensor:
    pieces = [
        values.narrow(dim, start, end - start).sum(dim, keepdim=True)
        for start, end in itertools.pairwise(parts)
    ]
    return torch.cat(pieces, dim) if pieces else values


def _mark(wrong: Tensor, count: Tensor) -> str:
    """Draw `.` if nothing is wrong, `#` if all is, otherwise tenths, rounded up."""
    share = float(wrong) / float(count)
    if share == 0:
        return "."
    return "#" if share == 1 else str(min(9, math.ceil(10 * share)))
