"""Log of the odds; the clamp keeps NaN."""

import torch
import triton
import triton.language as tl


@triton.jit
def logit_kernel(x_ptr, out_ptr, low, high, n, CLAMP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.5).to(tl.float32)
    if CLAMP:
        x = tl.where(x < low, low, tl.where(x > high, high, x))
    tl.store(out_ptr + offsets, tl.log(x / (1.0 - x)), mask=mask)


def logit(input, eps=None):
    x = input.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        low = 0.0 if eps is None else float(eps)
        logit_kernel[(triton.cdiv(n, 512),)](
            x, out, low, 1.0 - low, n, CLAMP=eps is not None, BLOCK=512
        )
    return out
