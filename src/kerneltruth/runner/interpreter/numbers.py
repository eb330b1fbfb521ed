"""Floating formats that NumPy lacks, held as raw bits and computed in float32.

Triton's interpreter keeps bf16 in uint16 and fp8 in uint8 arrays. `decode` gives the float32
values of such bits (exact), `encode` rounds values back as the GPU's conversions do.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# By Triton's name: the NumPy type that holds an element.
STORAGE: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "int1": np.bool_,
        "int8": np.int8,
        "int16": np.int16,
        "int32": np.int32,
        "int64": np.int64,
        "uint8": np.uint8,
        "uint16": np.uint16,
        "uint32": np.uint32,
        "uint64": np.uint64,
        "fp16": np.float16,
        "fp32": np.float32,
        "fp64": np.float64,
        "bf16": np.uint16,
        "fp8e5": np.uint8,
        "fp8e5b16": np.uint8,
        "fp8e4nv": np.uint8,
        "fp8e4b8": np.uint8,
        "fp8e4b15": np.uint8,
    }.items()
}

_BF16 = np.dtype(ml_dtypes.bfloat16)
_FP8 = {
    "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "fp8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
}
_FP8_MAX = {name: np.float32(ml_dtypes.finfo(kind).max) for name, kind in _FP8.items()}

NARROW = frozenset({"bf16", "fp8e4b15", *_FP8})


def _fp8_tables() -> dict[str, Array]:
    codes = np.arange(256, dtype=np.uint8)
    tables: dict[str, Array] = {
        name: codes.view(kind).astype(np.float32) for name, kind in _FP8.items()
    }
    # e4m3 with bias 15: its bits are those of an fp16 number, one place lower.
    wide = codes.astype(np.uint16)
    bits = ((wide & 0x7F) << 7) | ((wide & 0x80) << 8)
    tables["fp8e4b15"] = bits.view(np.float16).astype(np.float32)
    return tables


_TABLES = _fp8_tables()


def decode(bits: Array, name: str) -> Array:
    """Return the float32 values of the bits of the narrow format `name`."""
    if name == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return _TABLES[name][bits]


def encode(values: Array, name: str) -> Array:
    """Bits of the narrow format `name`, rounded to nearest, ties to even.

    fp8 saturates at its largest finite value, infinities too (`cvt.satfinite`); NaN stays NaN.
    """
    single = values.astype(np.float32, copy=False)
    if name == "bf16":
        return single.astype(_BF16).view(np.uint16)
    if name == "fp8e4b15":
        return _encode_e4b15(single)
    limit = _FP8_MAX[name]
    return np.clip(single, -limit, limit).astype(_FP8[name]).view(np.uint8)


def toward_zero(values: Array, name: str) -> Array:
    """Elements of the float format `name`, rounded toward zero."""
    single = values.astype(np.float32, copy=False)
    if name == "fp8e4b15":
        return _encode_e4b15(single)
    if name in NARROW:
        bits = encode(single, name)
        rounded = decode(bits, name)
    else:
        nearest = values.astype(STORAGE[name])
        bits = nearest.view(f"uint{nearest.itemsize * 8}")
        rounded = nearest
    # Next smaller magnitude is one less in sign-magnitude bits, in every float format.
    away = np.abs(rounded.astype(np.float64)) > np.abs(values.astype(np.float64))
    return np.asarray((bits - away.astype(bits.dtype)).view(STORAGE[name]))


def _encode_e4b15(single: Array) -> Array:
    # The GPU goes through fp16 toward zero, clamps at 1.75 and rounds half up on the bits.
    half = toward_zero(single, "fp16").view(np.uint16)
    magnitude = np.minimum(half & 0x7FFF, np.uint16(0x3F00))
    code = ((magnitude.astype(np.uint32) * 2 + 0x80) >> 8) & 0x7F
    return np.asarray((code | ((half >> 8) & 0x80)).astype(np.uint8))
