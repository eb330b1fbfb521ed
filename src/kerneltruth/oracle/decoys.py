"""Decoys: wrong results; a bound that accepts one is too wide on that case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from kerneltruth.oracle.dtypes import epsilon, is_float
from kerneltruth.oracle.reference import real_parts

GAIN: Mapping[str, float] = {
    "float64": 1.01,
    "float32": 1.01,
    "float16": 1.01,
    "bfloat16": 1.05,
    "float8_e4m3fn": 1.5,
    "float8_e5m2": 2.0,
}
LAST_TILE = 16
RIGHT_WITHIN_ULPS = 2


def decoys(
    rounded: torch.Tensor, inputs: Mapping[str, torch.Tensor | None], dtype: str
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield (name, output in the output dtype); see `is_right` for which are wrong.

    Zeros, a constant, a copy of an input of the same shape, the last tile zeroed, and a gain: 1%
    in fp32 and fp16, 5% in bf16, and more in fp8, whose neighbours are that far apart.
    """
    wide = rounded.to(torch.float64)
    yield "zeros", torch.zeros_like(rounded)
    finite = wide[torch.isfinite(wide)]
    level = float(finite.mean()) if finite.numel() else 1.0
    yield "constant", torch.full_like(wide, level).to(rounded.dtype)
    for name, tensor in inputs.items():
        if tensor is None or not (tensor.is_floating_point() or tensor.is_complex()):
            continue
        own = real_parts(tensor)
        if own.shape == rounded.shape:
            yield f"copy of {name}", own.to(rounded.dtype)
            break
    if wide.numel() > LAST_TILE:
        tail = rounded.clone()
        tail.reshape(-1)[-LAST_TILE:] = 0
        yield "last tile zeroed", tail
    if dtype in GAIN:
        yield "gain", (wide * GAIN[dtype]).to(rounded.dtype)


def is_right(decoy: torch.Tensor, rounded: torch.Tensor, dtype: str) -> bool:
    """Whether a decoy is within rounding of the right result everywhere: right on this case."""
    right = _comparable(rounded)
    margin = RIGHT_WITHIN_ULPS * epsilon(dtype) if is_float(dtype) else 0.0
    return not bool(((_comparable(decoy) - right).abs() > margin * right.abs()).any())


def _comparable(values: torch.Tensor) -> torch.Tensor:
    return torch.nan_to_num(values.to(torch.float64), nan=0.5, posinf=1e300, neginf=-1e300)
