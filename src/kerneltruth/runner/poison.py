"""The poison of a call: what fills uninitialized memory and the bands around allocations.

It is a function of 16 bytes and a dtype. The child fills with it, and the judge knows what must be
left of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

# A tile that runs over its last row writes far beyond the end, and seldom before the beginning. The
# first is a multiple of the pattern's length, so that an allocation begins as the pattern does.
BAND_BEFORE = 16 * 1024
BAND_AFTER = 64 * 1024
TILE_BYTES = 8192
# The pattern repeated: long enough to compare a band with, at any phase.
_RIBBON_TILES = 16

# Unsigned container, exponent bits, mantissa bits.
_FLOATS: Mapping[str, tuple[str, int, int]] = {
    "float64": ("u8", 11, 52),
    "float32": ("u4", 8, 23),
    "float16": ("u2", 5, 10),
    "bfloat16": ("u2", 8, 7),
    "float8_e5m2": ("u1", 5, 2),
}
_INTEGERS = {"int64": 8, "int32": 4, "int16": 2, "int8": 1}
_PARTS = {"complex128": "float64", "complex64": "float32", "complex32": "float16"}


def poison_bytes(poison: bytes, dtype: str, *, small: bool = False) -> bytes:
    """Return the pattern, a function of the call's poison and the dtype's name alone.

    Half of the floats are NaN, half are huge; integers are far from zero; bools are random.
    `small`: floats from 1 to 2 and their negatives, integers from 0 to 3, inverted bools. Every
    element then differs from the other pattern, which reveals reads that NaN would hide.
    """
    noise = hashlib.shake_256(poison + f"torch.{dtype}".encode()).digest(TILE_BYTES)
    dtype = _PARTS.get(dtype, dtype)
    if dtype in _FLOATS:
        floats = _small_floats if small else _wild_floats
        return bytes(floats(noise, *_FLOATS[dtype]).tobytes())
    if dtype == "float8_e4m3fn":
        if small:
            return bytes(_small_floats(noise, "u1", 4, 3).tobytes())
        raw = np.frombuffer(noise, dtype="u1")
        # Its only NaNs are 0x7f and 0xff; 0x78 to 0x7e are the largest finite values.
        return np.where(raw & 0x08, raw | 0x7F, (raw & 0x87) | 0x78).astype("u1").tobytes()
    if dtype == "bool":
        return ((np.frombuffer(noise, dtype="u1") ^ small) & 1).astype("u1").tobytes()
    if dtype in _INTEGERS:
        if small:
            return bytes((np.frombuffer(noise, dtype=f"u{_INTEGERS[dtype]}") & 3).tobytes())
        return bytes(_far_integers(noise, _INTEGERS[dtype]).tobytes())
    return bytes(255 - n for n in noise) if small else noise


@lru_cache(maxsize=16)
def ribbon(poison: bytes, dtype: str, *, small: bool = False) -> bytes:
    """Return the pattern repeated, so that a band at any phase of it is a slice."""
    return poison_bytes(poison, dtype, small=small) * _RIBBON_TILES


def phase_after(size: int) -> int:
    """Return where in the ribbon the band after an allocation of that size begins."""
    return (BAND_BEFORE + size) % TILE_BYTES


def side_of(before: bool, after: bool) -> str:
    """Return on which sides a band was written, given whether each is unchanged."""
    return "before" if after else "after" if before else "before and after"


def _wild_floats(noise: bytes, container: str, exponent: int, mantissa: int) -> Any:
    raw = np.frombuffer(noise, dtype=container)
    kind = raw.dtype.type
    sign = kind(1 << (exponent + mantissa))
    payload = kind((1 << mantissa) - 1)
    quiet = kind(((1 << exponent) - 1) << mantissa | 1 << (mantissa - 1))
    huge = kind(((1 << exponent) - 2) << mantissa)
    # The lowest exponent bit is noise that neither the sign nor the payload uses.
    is_nan = (raw >> kind(mantissa)) & kind(1) == 1
    return ((raw & (sign | payload)) | np.where(is_nan, quiet, huge)).astype(container)


def _small_floats(noise: bytes, container: str, exponent: int, mantissa: int) -> Any:
    raw = np.frombuffer(noise, dtype=container)
    kind = raw.dtype.type
    free = kind(1 << (exponent + mantissa) | (1 << mantissa) - 1)
    one = kind(((1 << (exponent - 1)) - 1) << mantissa)
    return ((raw & free) | one).astype(container)


def _far_integers(noise: bytes, size: int) -> Any:
    raw = np.frombuffer(noise, dtype=f"i{size}")
    top = raw.dtype.type(1 << (8 * size - 2))
    # The two upper bits become 01 or 10: at least a quarter of the range away from zero.
    return np.where(raw < 0, raw & ~top, raw | top).astype(f"i{size}")
