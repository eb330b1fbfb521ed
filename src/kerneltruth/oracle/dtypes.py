"""Facts about floating-point formats, and distances counted in their representable values."""

from __future__ import annotations

import math

import torch

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
        "complex64",
        "complex128",
    )
}
NAMES: dict[torch.dtype, str] = {dtype: name for name, dtype in DTYPES.items()}
NOT_IN_NUMPY = ("bfloat16", "float8_e4m3fn", "float8_e5m2")

_INTEGER_VIEW = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}
_SMALLEST_SUBNORMAL = {
    "float64": 2.0**-1074,
    "float32": 2.0**-149,
    "float16": 2.0**-24,
    "bfloat16": 2.0**-133,
    "float8_e4m3fn": 2.0**-9,
    "float8_e5m2": 2.0**-16,
}


def is_float(name: str) -> bool:
    """Whether the dtype of that name is a floating-point one."""
    return DTYPES[name].is_floating_point


def epsilon(name: str) -> float:
    """Spacing of the format's values at 1."""
    return float(torch.finfo(DTYPES[name]).eps)


def smallest_normal(name: str) -> float:
    """Smallest positive normal value of the format."""
    return float(torch.finfo(DTYPES[name]).smallest_normal)


def smallest_subnormal(name: str) -> float:
    """Smallest positive value of the format."""
    return _SMALLEST_SUBNORMAL[name]


def largest(name: str) -> float:
    """Largest finite value of the format."""
    return float(torch.finfo(DTYPES[name]).max)


def all_finite(magnitudes: torch.Tensor) -> bool:
    """Whether no absolute value is infinite or NaN; one pass where `isfinite` takes four."""
    return magnitudes.numel() == 0 or float(magnitudes.amax()) < math.inf


def ordered(values: torch.Tensor) -> torch.Tensor:
    """Map floats to int64 so that neighbours differ by 1; both zeros map to 0."""
    bits = values.contiguous().view(_INTEGER_VIEW[values.element_size()]).to(torch.int64)
    if values.element_size() == 8:
        return torch.where(bits < 0, -(bits & 0x7FFFFFFFFFFFFFFF), bits)
    sign = 1 << (8 * values.element_size() - 1)
    magnitude = bits & (sign - 1)
    return torch.where(bits < 0, -magnitude, magnitude)


def ulp_distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """How many representable values lie between a and b, as float64; same dtype, finite values."""
    difference = ordered(a).to(torch.float64) - ordered(b).to(torch.float64)
    return difference.abs()
