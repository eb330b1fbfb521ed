"""Euclid's algorithm: a while loop that runs until every lane is done."""

import torch
import triton
import triton.language as tl


@triton.jit
def gcd_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + offsets, mask=mask, other=0)
    b = tl.load(b_ptr + offsets, mask=mask, other=0)
    while tl.max((a != 0).to(tl.int32), axis=0) != 0:
        rest = tl.where(a != 0, b % tl.where(a != 0, a, 1), 0)
        b = tl.where(a != 0, a, b)
        a = rest
    tl.store(out_ptr + offsets, b, mask=mask)


def gcd(input, other):
    a, b = input.contiguous(), other.contiguous()
    out = torch.empty_like(a)
    n = a.numel()
    if n:
        gcd_kernel[(triton.cdiv(n, 1024),)](a, b, out, n, BLOCK=1024)
    return out
