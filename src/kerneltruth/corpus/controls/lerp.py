"""Interpolation, tuned over three configurations that must all be right."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 256}, num_warps=4),
        triton.Config({"BLOCK": 512}, num_warps=4),
        triton.Config({"BLOCK": 1024}, num_warps=8),
    ],
    key=["n"],
)
@triton.jit
def lerp_kernel(x_ptr, y_ptr, out_ptr, weight, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    out = tl.where(weight < 0.5, x + weight * (y - x), y - (y - x) * (1.0 - weight))
    tl.store(out_ptr + offsets, out, mask=mask)


def lerp(input, end, weight=0.5):
    x, y = input.contiguous(), end.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        lerp_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, float(weight), n)
    return out
