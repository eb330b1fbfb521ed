"""input @ input.T; only the tiles on and below the diagonal are computed."""

import torch
import triton
import triton.language as tl


@triton.jit
def gram_kernel(
    x_ptr, out_ptr, rows, depth, x_row, x_column, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr
):
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    if tl.program_id(1) > tl.program_id(0):
        return
    total = tl.zeros([BLOCK_M, BLOCK_M], dtype=tl.float32)
    for start in range(0, depth, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            x_ptr + i[:, None] * x_row + k[None, :] * x_column,
            mask=(i < rows)[:, None] & (k < depth)[None, :],
            other=0.0,
        )
        b = tl.load(
            x_ptr + k[:, None] * x_column + j[None, :] * x_row,
            mask=(k < depth)[:, None] & (j < rows)[None, :],
            other=0.0,
        )
        total = tl.dot(a, b, total, input_precision="ieee")
    mask = (i < rows)[:, None] & (j < rows)[None, :]
    tl.store(out_ptr + i[:, None] * rows + j[None, :], total, mask=mask)


def gram(input):
    rows, depth = input.shape
    out = torch.empty((rows, rows), dtype=input.dtype, device=input.device)
    if rows:
        tiles = triton.cdiv(rows, 32)
        gram_kernel[(tiles, tiles)](
            input, out, rows, depth, input.stride(0), input.stride(1), BLOCK_M=32, BLOCK_K=32
        )
    return out
