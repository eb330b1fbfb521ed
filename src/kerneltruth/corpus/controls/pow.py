"""The device library's power, which knows negative bases."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def pow_kernel(x_ptr, out_ptr, exponent, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.zeros([BLOCK], dtype=tl.float32) + exponent
    tl.store(out_ptr + offsets, libdevice.pow(x, y), mask=mask)


def pow(input, exponent=2.0):
    x = input.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        pow_kernel[(triton.cdiv(n, 512),)](x, out, float(exponent), n, BLOCK=512)
    return out
