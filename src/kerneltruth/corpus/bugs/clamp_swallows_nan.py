"""A maximum and a minimum."""

import torch
import triton
import triton.language as tl


@triton.jit
def clamp_kernel(
    x_ptr, out_ptr, low, high, n, HAS_LOW: tl.constexpr, HAS_HIGH: tl.constexpr, BLOCK: tl.constexpr
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    if HAS_LOW:
        x = tl.maximum(x, low)
    if HAS_HIGH:
        x = tl.minimum(x, high)
    tl.store(out_ptr + offsets, x, mask=mask)


def clamp(input, min=-1.0, max=1.0):
    x = input.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        clamp_kernel[(triton.cdiv(n, 512),)](
            x,
            out,
            0.0 if min is None else float(min),
            0.0 if max is None else float(max),
            n,
            HAS_LOW=min is not None,
            HAS_HIGH=max is not None,
            BLOCK=512,
        )
    return out
