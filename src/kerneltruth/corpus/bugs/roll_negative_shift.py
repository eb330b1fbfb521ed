"""A rotation of each row; the shift is reduced before the launch."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def roll_kernel(x_ptr, out_ptr, n, columns, shift, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    row = offsets // columns
    source = offsets % columns - shift
    source = tl.where(source < 0, source + columns, source)
    tl.store(out_ptr + offsets, tl.load(x_ptr + row * columns + source, mask=mask), mask=mask)


def roll(input, shifts=1):
    x = input.contiguous()
    out = torch.empty_like(x)
    n, columns = x.numel(), x.shape[1]
    if n:
        roll_kernel[(triton.cdiv(n, 512),)](
            x, out, n, columns, int(math.fmod(shifts, columns)), BLOCK=512
        )
    return out
