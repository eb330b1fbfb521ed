"""Round to the dtype of a case, for formulas that receive its inputs in float32."""

from __future__ import annotations

import torch
from torch import Tensor


def held_by(x: Tensor) -> torch.dtype:
    """Return the narrowest dtype that holds the values: the dtype of the case they belong to.

    Values that several dtypes hold are the same in each.
    """
    for dtype in (torch.bfloat16, torch.float16):
        if torch.equal(x.to(dtype).to(x.dtype).nan_to_num(), x.nan_to_num()):
            return dtype
    return x.dtype


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Round x to that dtype and back."""
    return x.to(dtype).to(x.dtype)


def cut_to_tf32(t: Tensor) -> Tensor:
    """Truncate values to TF32, in float64: 10 bits of mantissa."""
    bits = t.float().contiguous().view(torch.int32).long()
    narrow = (bits & ~0x1FFF).to(torch.int32).view(torch.float32).double()
    return torch.where(t.isfinite(), narrow, t)
