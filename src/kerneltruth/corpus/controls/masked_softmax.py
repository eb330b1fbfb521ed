"""Softmax over what the mask leaves; a row of which it leaves nothing is zero."""

import torch
import triton
import triton.language as tl


@triton.jit
def masked_softmax_kernel(
    x_ptr, mask_ptr, out_ptr, rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_N)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    offsets = row[:, None] * columns + column[None, :]
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    kept = tl.load(mask_ptr + offsets, mask=inside, other=0) != 0
    x = tl.where(kept, x, float("-inf"))
    some = tl.max(kept.to(tl.int32), axis=1) != 0
    top = tl.where(some, tl.max(x, axis=1), 0.0)
    weight = tl.exp(x - top[:, None])
    total = tl.where(some, tl.sum(weight, axis=1), 1.0)
    tl.store(out_ptr + offsets, weight / total[:, None], mask=inside)


def masked_softmax(input, mask):
    x, mask = input.contiguous(), mask.contiguous()
    rows, columns = x.shape
    out = torch.empty_like(x)
    if out.numel():
        block_n = max(128, triton.next_power_of_2(columns))
        block_m = max(1, min(8, 4096 // block_n))
        masked_softmax_kernel[(triton.cdiv(rows, block_m),)](
            x, mask, out, rows, columns, BLOCK_M=block_m, BLOCK_N=block_n
        )
    return out
