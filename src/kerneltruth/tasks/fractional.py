"""Judge fractional max pooling: one random number per plane and dim places the windows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.spec import Claim, Evidence

# The most different random numbers of a narrow dtype.
_GRIDS = {"float16": 2048, "bfloat16": 256}
# From 1 on, the sum of a window's number and a random one that lies between two float32 numbers
# rounds to even: everything between two multiples of this step is equal.
_STEP = 2.0**-25
# The error that a whole number may have in float64.
_SAME = 1e-6


def starts(size: int, count: int, kernel: int, u: float) -> Tensor:
    """Return where `count` windows start for the random number u in [0, 1)."""
    last = size - kernel
    if count == 1:
        return torch.tensor([last])
    step = last / (count - 1)
    first = int(u * step)
    return torch.tensor([*(int((i + u) * step) - first for i in range(count - 1)), last])


def all_starts(size: int, count: int, kernel: int, dtype: str) -> Tensor:
    """Return every way in which windows may start, one per row, exactly or in `dtype`."""
    if count == 1:
        return starts(size, count, kernel, 0.0).unsqueeze(0)
    last = size - kernel
    samples = [(a + b) / 2 for a, b in pairwise(_edges(last, count))]
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


def _edges(last: int, count: int) -> list[float]:
    """Return the random numbers at which a window moves, with 0 and 1."""
    step = last / (count - 1)
    whole = range(int((count - 1) * step) + 2) if step else range(0)
    moves = {u for i in range(count - 1) for m in whole if 0 < (u := m / step - i) < 1}
    return sorted(moves | {0.0, 1.0})


@lru_cache(maxsize=32)
def rounded_starts(size: int, count: int, kernel: int) -> Tensor:
    """Return every way in which windows may start, one per row, computed in float32.

    Near a random number at which several windows move, rounding moves one before the other: of some
    100,000 planes by PyTorch, one has no exact explanation.
    """
    last = size - kernel
    if count == 1 or not last:
        return all_starts(size, count, kernel, "float32")
    edges = torch.tensor(_edges(last, count), dtype=torch.float64).unsqueeze(1)
    # If one window moves alone, the exact sums contain both ways.
    places = (torch.arange(count - 1) + edges) * (last / (count - 1))
    together = ((places - places.round()).abs() < _SAME).sum(1) > 1
    edges = edges[together | (edges[:, 0] % 1 == 0)]
    # Sum, quotient and product are off by half an ulp each, of at most `count`.
    reach = int(count * 2 * torch.finfo(torch.float32).eps / _STEP)
    near = torch.round(edges / _STEP) + torch.arange(-reach, reach + 1)
    ulps = torch.arange(-4, 5) * (torch.finfo(torch.float32).eps / 2)
    u = torch.cat((near * _STEP, edges * (1 + ulps)), 1).float()
    u = u[(u >= 0) & (u < 1)].sort().values.unsqueeze(1)
    step = torch.tensor(float(last)) / (count - 1)
    windows = torch.arange(count - 1, dtype=torch.float32)
    rows = ((windows + u) * step).int() - (u * step).int()
    # Neighbours differ in few places: drop repeats before sorting.
    few = torch.unique_consecutive(rows.clamp(0, last), dim=0).tolist()
    return torch.tensor(sorted({(*way, last) for way in map(tuple, few)}))


def pooled_at(
    x: Tensor, kernel: tuple[int, int], rows: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the largest value of each window, and its place in the plane."""
    values, indices = F.max_pool2d(x, kernel, stride=1, return_indices=True)
    return values[..., rows, :][..., columns], indices[..., rows, :][..., columns]


def fractional_windows(evidence: Evidence) -> Iterator[Claim]:
    """Claim that some pair of random numbers explains each plane, and indices point at values."""
    x, out = evidence.inputs["input"], evidence.outputs[0].double()
    assert x is not None
    x = torch.relu(x)
    size = evidence.scalars["kernel_size"]
    kernel = (size, size) if isinstance(size, int) else size
    sizes = list(zip(x.shape[-2:], out.shape[-2:], kernel, strict=True))
    exact = [all_starts(*each, evidence.dtype) for each in sizes]
    # Values kept from an earlier call may be on another device.
    both = zip(exact, sizes, strict=True)
    ways = [torch.cat((way, rounded_starts(*each).to(way.device))) for way, each in both]
    # NaN equals itself here: no ReLU is negative.
    best = torch.nan_to_num(F.max_pool2d(x, kernel, stride=1), nan=-1.0, posinf=torch.inf)
    shown = torch.nan_to_num(out, nan=-1.0, posinf=torch.inf, neginf=-2.0)
    left = ~_explained(best, shown, *exact)
    lost = float((~_explained(best[left], shown[left], *ways)).sum())
    yield Claim("planes that no random numbers explain", lost, 0.0)
    if evidence.scalars["return_indices"]:
        wrong = _misplaced(x, evidence.outputs[1].long(), shown, kernel, ways)
        yield Claim("indices that do not point at their values", wrong, 0.0)


def _explained(best: Tensor, shown: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return which planes match windows at some of these rows and columns."""
    explained = torch.zeros(best.shape[:-2], dtype=torch.bool)
    for row in rows:
        across = best[..., row, :][..., columns]
        same = (across == shown.unsqueeze(-2)).all(-1).all(-2)
        explained |= same.any(-1)
    return explained


def _misplaced(
    x: Tensor,
    indices: Tensor,
    shown: Tensor,
    kernel: tuple[int, int],
    ways: list[Tensor],
) -> float:
    """Count indices outside of every window, or at another value."""
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
