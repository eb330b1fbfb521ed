import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(
    x_ptr,
    out_ptr,
    stride_row,
    stride_col,
    n_rows,
    n_cols,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    total = tl.zeros([BLOCK_ROWS], dtype=x_ptr.dtype.element_ty)
    for start in range(0, n_cols, BLOCK_COLS):
        cols = start + tl.arange(0, BLOCK_COLS)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
        x = tl.load(
            x_ptr + rows[:, None] * stride_row + cols[None, :] * stride_col, mask=mask, other=0.0
        )
        total = (total + tl.sum(x, axis=1)).to(x_ptr.dtype.element_ty)
    tl.store(out_ptr + rows, total, mask=rows < n_rows)


def sum(input, dim=-1, keepdim=False):
    n_rows, n_cols = input.shape
    out = torch.empty(n_rows, dtype=input.dtype, device=input.device)
    if n_rows == 0:
        return out.unsqueeze(-1) if keepdim else out
    grid = (triton.cdiv(n_rows, 16),)
    sum_kernel[grid](
        input,
        out,
        input.stride(0),
        input.stride(1),
        n_rows,
        n_cols,
        BLOCK_ROWS=16,
        BLOCK_COLS=4,
    )
    return out.unsqueeze(-1) if keepdim else out
