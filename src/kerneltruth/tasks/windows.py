"""Sizes where windows slide over images: in convolutions and pooling."""

from __future__ import annotations

Each = int | tuple[int, ...]


def along(given: Each | str, axis: int) -> int:
    """Return what an int or a pair says of rows (0) or columns (1); 0 if it is a name."""
    if isinstance(given, str):
        return 0
    return given[axis] if isinstance(given, tuple) else given


def steps(
    size: int, window: int, axis: int, stride: Each, padding: Each | str, dilation: Each
) -> int:
    """Return how often a window moves on along an axis, without the padding of `same`."""
    reach = along(dilation, axis) * (window - 1)
    return (size + 2 * along(padding, axis) - reach - 1) // along(stride, axis)


def outputs(
    size: int, window: int, axis: int, stride: Each, padding: Each | str, dilation: Each
) -> int:
    """Return how many outputs a convolution has along an axis."""
    moved = steps(size, window, axis, stride, padding, dilation) + 1
    return size if padding == "same" else moved


def fits(size: int, window: int, axis: int, padding: Each | str, dilation: Each) -> bool:
    """Return whether the padded image holds a window along an axis."""
    reach = along(dilation, axis) * (window - 1)
    padded = reach if padding == "same" else 2 * along(padding, axis)
    return reach + 1 <= size + padded
