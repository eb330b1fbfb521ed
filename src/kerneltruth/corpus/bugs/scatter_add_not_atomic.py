"""Additions into a float32 copy."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_add_kernel(index_ptr, src_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    index = tl.load(index_ptr + offsets, mask=mask, other=0)
    src = tl.load(src_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    total = tl.load(sum_ptr + index, mask=mask, other=0.0)
    tl.store(sum_ptr + index, total + src, mask=mask)


def scatter_add(input, index, src):
    total = input.contiguous().to(torch.float32, copy=True)
    index, src = index.contiguous(), src.contiguous()
    n = index.numel()
    if n:
        scatter_add_kernel[(triton.cdiv(n, 256),)](index, src, total, n, BLOCK=256)
    return total.to(input.dtype)
