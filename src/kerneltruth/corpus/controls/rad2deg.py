"""One product by 180 / pi."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def rad2deg_kernel(x_ptr, out_ptr, factor: tl.constexpr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * factor, mask=mask)


def rad2deg(input):
    x = input.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        rad2deg_kernel[(triton.cdiv(n, 512),)](x, out, 180.0 / math.pi, n, BLOCK=512)
    return out
