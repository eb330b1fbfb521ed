"""A fill where the mask is set, through a bool pointer."""

import torch
import triton
import triton.language as tl


@triton.jit
def masked_fill_kernel(x_ptr, mask_ptr, out_ptr, value, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)
    filled = tl.load(mask_ptr + offsets, mask=inside, other=0) != 0
    tl.store(out_ptr + offsets, tl.where(filled, value, x), mask=inside)


def masked_fill(input, mask, value=0.0):
    x, mask = input.contiguous(), mask.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        masked_fill_kernel[(triton.cdiv(n, 512),)](x, mask, out, float(value), n, BLOCK=512)
    return out
