"""Functions that NumPy lacks, computed in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch

from kerneltruth.runner.interpreter.numbers import Array


def _from_torch(function: Callable[..., Any]) -> Callable[[Array], Array]:
    def apply(x: Array) -> Array:
        return cast(Array, function(torch.from_numpy(x.astype(np.float64))).numpy())

    return apply


def _each(function: Callable[..., float]) -> Callable[..., Array]:
    def guarded(*args: float) -> float:
        try:
            return function(*(float(a) for a in args))
        except (ValueError, OverflowError):
            return math.nan

    return np.vectorize(guarded, otypes=[np.float64])


erf = _from_torch(torch.special.erf)
erfc = _from_torch(torch.special.erfc)
erfinv = _from_torch(torch.special.erfinv)
erfcx = _from_torch(torch.special.erfcx)
normcdf = _from_torch(torch.special.ndtr)
normcdfinv = _from_torch(torch.special.ndtri)
bessel_i0 = _from_torch(torch.special.i0)
bessel_i1 = _from_torch(torch.special.i1)
bessel_j0 = _from_torch(torch.special.bessel_j0)
bessel_j1 = _from_torch(torch.special.bessel_j1)
bessel_y0 = _from_torch(torch.special.bessel_y0)
bessel_y1 = _from_torch(torch.special.bessel_y1)
lgamma = _from_torch(torch.lgamma)
ieee_remainder = _each(math.remainder)


def _gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    if x == math.inf or x > 171.7:
        return math.inf
    return math.gamma(x)


gamma = _each(_gamma)


def erfcinv(x: Array) -> Array:
    """Compute the inverse of erfc."""
    return normcdfinv(x / 2) / -math.sqrt(2)


def rounded_half_away(x: Array) -> Array:
    """C's `round`."""
    return np.asarray(np.copysign(np.floor(np.abs(x) + 0.5), x))


def sin_of_pi(x: Array) -> Array:
    """sin(pi x), exact at multiples of one half."""
    turn = np.fmod(x, 2.0)
    folded = np.where(np.abs(turn) > 0.5, np.copysign(1.0, turn) - turn, turn)
    folded = np.where(np.abs(turn) > 1.5, turn - np.copysign(2.0, turn), folded)
    return np.asarray(np.sin(np.pi * folded))


def cos_of_pi(x: Array) -> Array:
    """cos(pi x), exact at multiples of one half."""
    turn = np.abs(np.fmod(x, 2.0))
    folded = np.where(turn > 1.0, 2.0 - turn, turn)
    return np.asarray(np.where(folded == 0.5, 0.0, np.cos(np.pi * folded)))
