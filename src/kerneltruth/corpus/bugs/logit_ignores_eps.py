"""Log of the odds."""

import torch
import triton
import triton.language as tl


@triton.jit
def logit_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.5).to(tl.float32)
    tl.store(out_ptr + offsets, tl.log(x / (1.0 - x)), mask=mask)


def logit(input, eps=None):
    x = input.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        logit_kernel[(triton.cdiv(n, 512),)](x, out, n, BLOCK=512)
    return out
