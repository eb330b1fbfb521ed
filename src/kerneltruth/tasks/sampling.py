"""Sample an image at positions between pixels, generic over the dtype, as torch does.

A nearest pixel is a discontinuous function of the position. The reference rounds positions within
2**-17 of the middle between two pixels to the middle itself, which goes to the even pixel as in
torch. An exact middle therefore stays one when the oracle moves the inputs a little. Without `snap`
there is no such tolerance.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_SNAP = 2.0**16


def _pixel(position: Tensor, size: int, align_corners: bool, order: int = 0) -> Tensor:
    """Map -1 .. 1 to pixels; `order` chooses how the same expression is rounded."""
    span = size - 1 if align_corners else size
    low = 0.0 if align_corners else 0.5
    if order == 0:
        return (position + 1) * (span / 2) - low
    if order == 1:
        return ((position + 1) * span - 2 * low) / 2
    return position * (span / 2) + (size - 1) / 2


def _reflected(pixel: Tensor, size: int, align_corners: bool) -> Tensor:
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    span = high - low
    if span == 0:
        return torch.zeros_like(pixel)
    off = (pixel - low).abs()
    turns = torch.floor(off / span)
    rest = off - turns * span
    return torch.where(turns % 2 == 0, rest + low, high - rest).clamp(0, size - 1)


def _padded(pixel: Tensor, size: int, padding_mode: str, align_corners: bool) -> Tensor:
    if padding_mode == "border":
        return pixel.clamp(0, size - 1)
    if padding_mode == "reflection":
        return _reflected(pixel, size, align_corners)
    return pixel


def _fetch(image: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return pixels [N, C, ...] at integer positions [N, ...]; those outside are 0."""
    n, c, height, width = image.shape
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    at = rows.clamp(0, height - 1) * width + columns.clamp(0, width - 1)
    at = at.reshape(n, 1, -1).expand(n, c, -1)
    found = image.reshape(n, c, height * width).gather(2, at).reshape(n, c, *rows.shape[1:])
    return torch.where(inside.unsqueeze(1), found, torch.zeros_like(found))


def _cubic(t: Tensor) -> tuple[Tensor, ...]:
    """Return Keys' weights (a = -0.75) of the four neighbours of a position t past the second."""
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def sample(
    input: Tensor,
    grid: Tensor,
    mode: str,
    padding_mode: str,
    align_corners: bool,
    order: int = 0,
    snap: bool = True,
    lost_gives: float = math.nan,
) -> Tensor:
    """Sample an image at a grid, all in its dtype, as torch does on a CPU.

    A position that is not finite gives `lost_gives`.
    """
    lost = ~torch.isfinite(grid).all(-1)
    wide = torch.where(lost.unsqueeze(-1), torch.zeros_like(grid), grid)
    height, width = input.shape[-2:]
    x = _pixel(wide[..., 0], width, align_corners, order)
    y = _pixel(wide[..., 1], height, align_corners, order)

    def at(rows: Tensor, columns: Tensor) -> Tensor:
        return _fetch(input, rows.long(), columns.long())

    def pad(pixel: Tensor, size: int) -> Tensor:
        return _padded(pixel, size, padding_mode, align_corners)

    if mode == "bicubic":
        left, top = torch.floor(x), torch.floor(y)
        out = torch.zeros((), dtype=wide.dtype)
        for j, weight_y in enumerate(_cubic(y - top)):
            rows = pad(top + (j - 1), height)
            for i, weight_x in enumerate(_cubic(x - left)):
                value = at(rows, pad(left + (i - 1), width))
                out = out + (weight_y * weight_x).unsqueeze(1) * value
    else:
        x, y = pad(x, width), pad(y, height)
        if mode == "nearest":
            if snap and wide.dtype == torch.float64:
                x, y = torch.round(x * _SNAP) / _SNAP, torch.round(y * _SNAP) / _SNAP
            out = at(torch.round(y), torch.round(x))
        else:
            left, top = torch.floor(x), torch.floor(y)
            right, below = x - left, y - top
            out = (
                at(top, left) * ((1 - right) * (1 - below)).unsqueeze(1)
                + at(top, left + 1) * (right * (1 - below)).unsqueeze(1)
                + at(top + 1, left) * ((1 - right) * below).unsqueeze(1)
                + at(top + 1, left + 1) * (right * below).unsqueeze(1)
            )
    return torch.where(lost.unsqueeze(1), lost_gives, out)
