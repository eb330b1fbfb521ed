"""A count in int32, read through a bool pointer."""

import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(
    x_ptr, out_ptr, rows, columns, x_row, x_column, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    count = tl.zeros([BLOCK_M], dtype=tl.int32)
    for start in range(0, columns, BLOCK_N):
        column = start + tl.arange(0, BLOCK_N)
        mask = (row < rows)[:, None] & (column < columns)[None, :]
        x = tl.load(x_ptr + row[:, None] * x_row + column[None, :] * x_column, mask=mask, other=0)
        count += tl.sum(x.to(tl.int32), axis=1)
    tl.store(out_ptr + row, count.to(tl.int64), mask=row < rows)


def count_nonzero(input):
    rows, columns = input.shape
    out = torch.empty(rows, dtype=torch.int64, device=input.device)
    if rows:
        count_kernel[(triton.cdiv(rows, 16),)](
            input,
            out,
            rows,
            columns,
            input.stride(0),
            input.stride(1),
            BLOCK_M=16,
            BLOCK_N=128,
        )
    return out
