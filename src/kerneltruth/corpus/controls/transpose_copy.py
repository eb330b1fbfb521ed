"""A tile at a time, transposed between load and store."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, rows, columns, x_row, x_column, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    tile = tl.load(x_ptr + i[:, None] * x_row + j[None, :] * x_column, mask=inside)
    tl.store(out_ptr + j[:, None] * rows + i[None, :], tl.trans(tile), mask=tl.trans(inside))


def transpose_copy(input):
    rows, columns = input.shape
    out = torch.empty((columns, rows), dtype=input.dtype, device=input.device)
    if out.numel():
        transpose_kernel[(triton.cdiv(rows, 32), triton.cdiv(columns, 32))](
            input, out, rows, columns, input.stride(0), input.stride(1), BLOCK=32
        )
    return out
