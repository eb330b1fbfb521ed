"""A scan from the end, one program per block, which takes what follows from the next block."""

import torch
import triton
import triton.language as tl


@triton.jit
def reverse_cumsum_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    block = tl.program_id(1)
    last = tl.minimum((block + 1) * BLOCK, columns)
    offsets = last - 1 - tl.arange(0, BLOCK)
    mask = offsets >= block * BLOCK
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    carry = tl.load(out_ptr + row * columns + last, mask=last < columns, other=0.0)
    total = tl.cumsum(x, axis=0) + carry.to(tl.float32)
    tl.store(out_ptr + row * columns + offsets, total, mask=mask)


def reverse_cumsum(input):
    x = input.contiguous()
    rows, columns = x.shape
    out = torch.empty_like(x)
    if out.numel():
        reverse_cumsum_kernel[(rows, triton.cdiv(columns, 128))](x, out, columns, BLOCK=128)
    return out
