"""Model the errors of functions and means on a GPU, with pseudo-random signs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

# A mean combined from means of parts loses an ulp each time the parts double; the errors of more
# steps than this cancel.
WELFORD_ULPS = 4.0
_DRAWN = 2**16 + 1


class Errors:
    """Applies the errors of elementary functions and means.

    Attributes:
        used_library: whether an operator was met that a library computes another way.
        used_function: whether an elementary function was met.
    """

    def __init__(self, *, ulp: float | None, salt: int | None = 0) -> None:
        """Set up.

        Args:
            ulp: spacing at 1 of the precision in which elementary functions are computed; None
                means that of the dtype in which each of them is.
            salt: chooses the signs of their errors; None means that all of them are upwards.
        """
        self.used_library = False
        self.used_function = False
        self._ulp = ulp
        self._salt = salt

    def mean_off(self, mean: Tensor, count: int) -> Tensor:
        """Return the mean of `count` elements with the error of Welford's algorithm."""
        return self.off(mean, min(WELFORD_ULPS, math.log2(max(count, 1))))

    def off(self, value: Tensor, ulps: float, *, most: float = math.inf) -> Tensor:
        """Return a value with an error of some ulps, up or down at random.

        If it is indistinguishable from the function's largest magnitude, it is exactly that.
        """
        self.used_function = True
        up: Tensor | float = 1.0
        if self._salt is not None:
            self._salt += 1
            up = signs(value, self._salt)
        ulp = torch.finfo(value.dtype).eps if self._ulp is None else self._ulp
        moved = value * (1 + ulps * ulp * up)
        full = value.abs() >= most * (1 - ulp / 4)
        return torch.where(full, value.sign() * most, moved) if most < math.inf else moved


def signs(like: Tensor, salt: int) -> Tensor:
    """Return pseudo-random signs in the tensor's shape and dtype."""
    found = (drawn(like.shape, salt, like.device) >> 15) & 1
    return found.mul_(2).sub_(1).to(like.dtype)


def drawn(shape: Sequence[int], salt: int, device: torch.device) -> Tensor:
    """Return pseudo-random integers in [0, 2**32) of this shape."""
    count = math.prod(shape)
    start = salt * 7919 % _DRAWN
    known = _drawn(device)
    if start + count > _DRAWN:
        known = known.repeat(-(-(start + count) // _DRAWN))
    return known[start : start + count].reshape(tuple(shape))


@cache
def _drawn(device: torch.device) -> Tensor:
    """Return a period that repeats unnoticed."""
    return hashed(_DRAWN, device)


def hashed(count: int, device: torch.device | None = None) -> Tensor:
    """Return pseudo-random integers in [0, 2**32), the same on every device."""
    mixed = torch.arange(count, device=device)
    for _ in range(3):
        mixed = ((mixed ^ (mixed >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    return mixed


def widened(x: Tensor) -> Tensor:
    """Convert to float32 at least."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
