"""Rounding to the dtype of a case, for formulas that are called with its inputs in float32."""

from __future__ import annotations

import torch
from torch import Tensor


def held_by(x: Tensor) -> torch.dtype:
    """The narrowest dtype that holds the values: that of the case whose inputs they are.

    Values that more than one dtype holds are as good in either.
    """
    for dtype in (torch.bfloat16, torch.float16):
        if torch.equal(x.to(dtype).to(x.dtype).nan_to_num(), x.nan_to_num()):
            return dtype
    return x.dtype


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """X after a stay in that dtype."""
    return x.to(dtype).to(x.dtype)


def cut_to_tf32(t: Tensor) -> Tensor:
    """Values as TF32 has them, in float64: 10 bits of mantissa, the rest cut."""
    bits = t.float().contiguous().view(torch.int32).long()
    narrow = (bits & ~0x1FFF).to(torch.int32).view(torch.float32).double()
    return torch.where(t.isfinite(), narrow, t)
