"""Compute scans as PyTorch's GPU kernels do: each partial result has the tensor's dtype.

On a CPU a scan in half precision carries float32 from element to element. On a GPU it rounds the
partial results of its parts, so the error grows with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from kerneltruth.tasks.gpu.errors import Errors

aten = torch.ops.aten

Join = Callable[[Tensor, Tensor], Tensor]

# Elements that one thread scans in a row (CUB, for two bytes each), and how many threads are joined
# at once.
_PER_THREAD = 30
_WARP = 32
# Threads of a block, each with two elements; at least 16 of them share a row.
_LOG_THREADS = 9
_LOG_THREADS_OF_ROW = 4


def scans(x: Tensor, dim: int, join: Join, empty: float) -> Tensor:
    """Scan along a dim, in the order of PyTorch's kernels.

    Args:
        x: the tensor to scan.
        dim: the dim to scan along.
        join: makes one partial result of two.
        empty: the partial result of nothing.
    """
    if x.ndim == 0 or x.numel() == 0:
        return x.clone()
    turned = x.movedim(dim, -1)
    rows = turned.reshape(-1, turned.shape[-1])
    if len(rows) == 1:
        out = _of_one_row(rows, join, empty)
    elif dim % x.ndim == x.ndim - 1:
        out = _in_blocks(rows, _block(*rows.shape), join, empty)
    else:
        out = _one_by_one(rows, join)
    return out.reshape(turned.shape).movedim(-1, dim).contiguous()


def _one_by_one(rows: Tensor, join: Join) -> Tensor:
    columns = list(rows.unbind(-1))
    for i in range(1, len(columns)):
        columns[i] = join(columns[i - 1], columns[i])
    return torch.stack(columns, -1)


def _block(rows: int, columns: int) -> int:
    """Return how many elements of a row a block scans at a time; the shape divides its threads."""
    more = (columns - 1).bit_length() - (rows - 1).bit_length()
    log = (_LOG_THREADS + more) // 2
    return 2 << min(max(log, _LOG_THREADS_OF_ROW), _LOG_THREADS)


def _in_blocks(rows: Tensor, block: int, join: Join, empty: float) -> Tensor:
    """Scan block after block by a tree; join the blocks before to a block's first element.

    The tree is Sklansky's: each step doubles the parts, joining the last of the left half to all of
    the right half.
    """
    out = torch.empty_like(rows)
    before = rows.new_full((len(rows),), empty)
    for start in range(0, rows.shape[-1], block):
        part = rows[:, start : start + block]
        held = rows.new_full((len(rows), block), empty)
        held[:, : part.shape[-1]] = part
        held[:, 0] = join(held[:, 0], before)
        half = 1
        while half < block:
            pairs = held.view(len(rows), -1, 2, half)
            pairs[:, :, 1] = join(pairs[:, :, 1], pairs[:, :, 0, -1:])
            half *= 2
        out[:, start : start + block] = held[:, : part.shape[-1]]
        before = held[:, -1]
    return out


def _of_one_row(row: Tensor, join: Join, empty: float) -> Tensor:
    """Join each thread's elements to those of all threads before it, one after the other."""
    columns = row.shape[-1]
    threads = -(-columns // _PER_THREAD)
    held = row.new_full((threads * _PER_THREAD,), empty)
    held[:columns] = row[0]
    parts = held.view(threads, _PER_THREAD)
    totals = _one_by_one(parts, join)[:, -1]
    before = _in_blocks(totals.unsqueeze(0), _WARP, join, empty)[0].roll(1)
    before[0] = empty
    out = _one_by_one(torch.cat((before.unsqueeze(-1), parts), -1), join)[:, 1:]
    return out.reshape(1, -1)[:, :columns]


def _cumsum(gpu: Errors, x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    del gpu
    return scans(x if dtype is None else x.to(dtype), dim, torch.add, 0.0)


def _cumprod(gpu: Errors, x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    del gpu
    return scans(x if dtype is None else x.to(dtype), dim, torch.mul, 1.0)


SCANS: Mapping[Any, Callable[..., Any]] = {
    aten.cumsum.default: _cumsum,
    aten.cumprod.default: _cumprod,
}
