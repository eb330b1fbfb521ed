"""Fractional max pooling: windows whose places hang on one random number per plane and dim."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.spec import Claim, Evidence

# How many different random numbers a narrow dtype has at most.
_GRIDS = {"float16": 2048, "bfloat16": 256}


def starts(size: int, count: int, kernel: int, u: float) -> Tensor:
    """Where `count` windows start for the random number u in [0, 1)."""
    last = size - kernel
    if count == 1:
        return torch.tensor([last])
    step = last / (count - 1)
    first = int(u * step)
    return torch.tensor([*(int((i + u) * step) - first for i in range(count - 1)), last])


def all_starts(size: int, count: int, kernel: int, dtype: str) -> Tensor:
    """Every way in which windows may start, one per row, computed exactly or in `dtype`."""
    if count == 1:
        return starts(size, count, kernel, 0.0).unsqueeze(0)
    last = size - kernel
    step = last / (count - 1)
    edges = {0.0, 1.0}
    if step:
        whole = range(int((count - 1) * step) + 2)
        edges |= {u for i in range(count - 1) for m in whole if 0 < (u := m / step - i) < 1}
    places = sorted(edges)
    samples = [(a + b) / 2 for a, b in pairwise(places)]
    found = [starts(size, count, kernel, u) for u in samples]
    if dtype in _GRIDS:
        narrow = getattr(torch, dtype)
        grid = (torch.arange(_GRIDS[dtype], dtype=torch.float64) / _GRIDS[dtype]).to(narrow)
        rough = torch.tensor(float(last), dtype=narrow) / (count - 1)
        i = torch.arange(count - 1, dtype=narrow)
        rows = ((i + grid.unsqueeze(1)) * rough).long() - (grid * rough).long().unsqueeze(1)
        ends = torch.full((rows.shape[0], 1), last)
        found += list(torch.cat((rows.clamp(0, last), ends), 1))
    return torch.tensor(sorted({tuple(way.tolist()) for way in found}))


def pooled_at(
    x: Tensor, kernel: tuple[int, int], rows: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor]:
    """The largest value of each window, and where in its plane it lies."""
    values, indices = F.max_pool2d(x, kernel, stride=1, return_indices=True)
    return values[..., rows, :][..., columns], indices[..., rows, :][..., columns]


def fractional_windows(evidence: Evidence) -> Iterator[Claim]:
    """Each plane is what some pair of random numbers gives; indices point at the values."""
    x, out = evidence.inputs["input"], evidence.outputs[0].double()
    assert x is not None
    x = torch.relu(x)
    size = evidence.scalars["kernel_size"]
    kernel = (size, size) if isinstance(size, int) else size
    rows, columns = (
        all_starts(n, count, k, evidence.dtype)
        for n, count, k in zip(x.shape[-2:], out.shape[-2:], kernel, strict=True)
    )
    # NaN equals itself here: no ReLU is negative.
    best = torch.nan_to_num(F.max_pool2d(x, kernel, stride=1), nan=-1.0, posinf=torch.inf)
    shown = torch.nan_to_num(out, nan=-1.0, posinf=torch.inf, neginf=-2.0)
    explained = torch.zeros(x.shape[:-2], dtype=torch.bool)
    for row in rows:
        across = best[..., row, :][..., columns]
        same = (across == shown.unsqueeze(-2)).all(-1).all(-2)
        explained |= same.any(-1)
    lost = float((~explained).sum())
    yield Claim("planes that no random numbers explain", lost, 0.0)
    if evidence.scalars["return_indices"]:
        wrong = _misplaced(x, evidence.outputs[1].long(), shown, kernel, (rows, columns))
        yield Claim("indices that do not point at their values", wrong, 0.0)


def _misplaced(
    x: Tensor,
    indices: Tensor,
    shown: Tensor,
    kernel: tuple[int, int],
    ways: tuple[Tensor, Tensor],
) -> float:
    """How many indices lie outside of every window, or where another value is."""
    height, width = x.shape[-2:]
    within = (indices >= 0) & (indices < height * width)
    safe = indices.clamp(0, height * width - 1)
    there = torch.nan_to_num(x, nan=-1.0, posinf=torch.inf).flatten(-2)
    found = there.gather(-1, safe.flatten(-2)).reshape(shown.shape)
    good = within & (found == shown)
    places = (safe // width, safe % width)
    for place, way, k, axis in zip(places, ways, kernel, ((-1, 1), (1, -1)), strict=True):
        low, high = way.amin(0).reshape(axis), way.amax(0).reshape(axis) + k
        good &= (place >= low) & (place < high)
    return float((~good).sum())
