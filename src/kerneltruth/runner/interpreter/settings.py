"""The one choice that the interpreter leaves to its user."""

from __future__ import annotations

from typing import Literal

DotPrecision = Literal["ieee", "tf32"]

# The judge's bounds cover TF32 by policy, so products of fp32 operands are exact by default.
_dot_precision: DotPrecision = "ieee"


def set_dot_precision(precision: DotPrecision) -> None:
    """Choose how `tl.dot` reads fp32 operands whose kernel leaves the precision at TF32.

    `ieee` uses all 24 bits; `tf32` drops the low 13 bits first, as the tensor cores do. A kernel
    that asks for `input_precision="ieee"` gets it under either.
    """
    global _dot_precision
    if precision not in ("ieee", "tf32"):
        raise ValueError(f"dot precision must be 'ieee' or 'tf32', got {precision!r}")
    _dot_precision = precision


def dot_precision() -> DotPrecision:
    """Return the current choice."""
    return _dot_precision
