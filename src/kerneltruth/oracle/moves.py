"""Inputs moved by roundings of their own size, and flushed, as correct kernels may see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from kerneltruth.cases.philox import stream

# How inputs are moved: up and down, by a sign for each element, and by a share for each.
MOVES = ("up", "down", "signs-0", "signs-1", "between-0", "between-1")
# Which bits of a random word say so, from the third move on: (shift, mask).
_FIELDS = ((0, 1), (1, 1), (2, 0x3FFF), (16, 0x3FFF))
# Elements of float64 in a line of the cache.
_ALIGN = 8
# Work on this many elements at a time: temporaries would be larger than all the moves.
_PIECE = 2**18
# Inputs of more elements are moved one way after the other: together they would fill gigabytes.
_AT_ONCE = 2**24


def each_move(
    wide: Mapping[str, torch.Tensor | None],
    ulp: float,
    seed: int,
    *,
    at_once: int = _AT_ONCE,
    piece: int = _PIECE,
) -> Iterator[dict[str, torch.Tensor]]:
    """The floating-point inputs under one move of MOVES after the other."""
    floats = {n: t for n, t in wide.items() if t is not None and t.is_floating_point()}
    total = sum(t.numel() for t in floats.values())
    if total <= at_once:
        moved = moved_each_way(wide, ulp, seed, piece=piece)
        yield from ({n: rows[i] for n, rows in moved.items()} for i in range(len(MOVES)))
        return
    words = stream(seed, "perturb").words(total)
    for move in range(len(MOVES)):
        yield _moved_one_way(floats, words, ulp, move, piece)


def _moved_one_way(
    floats: Mapping[str, torch.Tensor], words: torch.Tensor, ulp: float, move: int, piece: int
) -> dict[str, torch.Tensor]:
    """The inputs under one move, to the bit what `moved_each_way` gives."""
    moved: dict[str, torch.Tensor] = {}
    start = 0
    for name, t in floats.items():
        flat = t.reshape(-1)
        if move < 2:
            moved[name] = torch.mul(flat, 1 - ulp if move else 1 + ulp).view(t.shape)
            continue
        shift, mask = _FIELDS[move - 2]
        result = torch.empty_like(flat)
        for at in range(0, t.numel(), piece):
            own = words[start + at : start + min(at + piece, t.numel())]
            factors = ((own >> shift) & mask).to(torch.float64)
            factors.mul_(_step(ulp, mask)).add_(1 - ulp)
            torch.mul(flat[at : at + piece], factors, out=result[at : at + piece])
        start += t.numel()
        moved[name] = result.view(t.shape)
    return moved


def _step(ulp: float, mask: int) -> float:
    """From k in [0, mask] to a factor in [1 - ulp, 1 + ulp], rounded once: as 1 + x * ulp."""
    return 2 * ulp / (mask + 1 if mask > 1 else 1)


def moved_each_way(
    wide: Mapping[str, torch.Tensor | None], ulp: float, seed: int, *, piece: int = _PIECE
) -> dict[str, list[torch.Tensor]]:
    """Each floating-point input under every move in MOVES; one draw of bits serves all.

    Two moves take only the signs. With these alone, two huge inputs that cancel would move alike
    half of the time, and the case would look settled: the others are anywhere between one ulp
    down and one up.
    """
    floats = {n: t for n, t in wide.items() if t is not None and t.is_floating_point()}
    words = stream(seed, "perturb").words(sum(t.numel() for t in floats.values()))
    scales = torch.tensor([[_step(ulp, mask)] for _, mask in _FIELDS], dtype=torch.float64)
    shifts, masks = torch.tensor(_FIELDS).t().unsqueeze(-1).unbind(0)
    moved: dict[str, list[torch.Tensor]] = {}
    start = 0
    for name, t in floats.items():
        n = t.numel()
        own = words[start : start + n]
        start += n
        # Every row begins where a fresh tensor might: a matrix product may round otherwise.
        rows = torch.empty((len(MOVES), -(-n // _ALIGN) * _ALIGN), dtype=torch.float64)[:, :n]
        flat = t.reshape(-1)
        torch.mul(flat, 1 + ulp, out=rows[0])
        torch.mul(flat, 1 - ulp, out=rows[1])
        for at in range(0, n, piece):
            bits = (own[at : at + piece] >> shifts) & masks
            factors = bits.to(torch.float64).mul_(scales).add_(1 - ulp)
            torch.mul(flat[at : at + piece], factors, out=rows[2:, at : at + piece])
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
