"""Inputs moved by roundings of their own size, and flushed, as correct kernels may see them."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kerneltruth.cases.philox import stream

# How inputs are moved: up and down, by a sign for each element, and by a share for each.
MOVES = ("up", "down", "signs-0", "signs-1", "between-0", "between-1")
# Which bits of a random word say so, from the third move on: (shift, mask).
_FIELDS = ((0, 1), (1, 1), (2, 0x3FFF), (16, 0x3FFF))
# Elements of float64 in a line of the cache.
_ALIGN = 8


def moved_each_way(
    wide: Mapping[str, torch.Tensor | None], ulp: float, seed: int
) -> dict[str, list[torch.Tensor]]:
    """Each floating-point input under every move in MOVES; one draw of bits serves all.

    Two moves take only the signs. Of these alone, two huge inputs that cancel would move alike
    half of the time, and the case would look settled: the others are anywhere between one ulp
    down and one up.
    """
    floats = {n: t for n, t in wide.items() if t is not None and t.is_floating_point()}
    words = stream(seed, "perturb").words(sum(t.numel() for t in floats.values()))
    # From k in [0, mask] to a factor in [1 - ulp, 1 + ulp], rounded once: the same as 1 + x * ulp.
    scales = torch.tensor(
        [[2 * ulp / (mask + 1 if mask > 1 else 1)] for _, mask in _FIELDS], dtype=torch.float64
    )
    shifts, masks = torch.tensor(_FIELDS).t().unsqueeze(-1).unbind(0)
    moved: dict[str, list[torch.Tensor]] = {}
    start = 0
    for name, t in floats.items():
        n = t.numel()
        own = words[start : start + n]
        start += n
        factors = ((own >> shifts) & masks).to(torch.float64).mul_(scales).add_(1 - ulp)
        # Every row begins where a fresh tensor might: a matrix product may round otherwise.
        rows = torch.empty((len(MOVES), -(-n // _ALIGN) * _ALIGN), dtype=torch.float64)[:, :n]
        flat = t.reshape(-1)
        torch.mul(flat, 1 + ulp, out=rows[0])
        torch.mul(flat, 1 - ulp, out=rows[1])
        torch.mul(flat, factors, out=rows[2:])
        moved[name] = [row.view(t.shape) for row in rows.unbind(0)]
    return moved


def has_subnormal(t: torch.Tensor, tiny: float) -> bool:
    """Whether an element is nearer to 0 than the smallest normal value, and not 0."""
    if not t.is_floating_point():
        return False
    small = t.abs() < tiny
    return bool(small.any()) and bool((small & (t != 0)).any())


def flush(t: torch.Tensor, tiny: float) -> torch.Tensor:
    """The tensor with 0 for subnormal elements."""
    return torch.where(t.abs() < tiny, torch.zeros_like(t), t)
