import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(
    x_ptr,
    out_ptr,
    stride_row,
    stride_col,
    n_cols,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(0)
    x_ptr += row * stride_row
    lanes = tl.arange(0, BLOCK_SIZE)
    best = -float("inf")
    best_index = 0
    nan_index = 2147483647
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + cols * stride_col, mask=mask, other=-float("inf")).to(tl.float32)
        is_nan = x != x
        nan_index = tl.minimum(nan_index, tl.min(tl.where(is_nan, cols, 2147483647), axis=0))
        x = tl.where(is_nan, -float("inf"), x)
        block_best = tl.max(x, axis=0)
        block_index = tl.min(tl.where(x == block_best, cols, 2147483647), axis=0)
        # Strictly greater: the first of equal maxima wins.
        better = block_best > best
        best_index = tl.where(better, block_index, best_index)
        best = tl.where(better, block_best, best)
    # The first NaN is the maximum, as in PyTorch.
    result = tl.where(nan_index < n_cols, nan_index, best_index)
    tl.store(out_ptr + row, result.to(tl.int64))


def argmax(input_tensor, dim=-1, keepdim=False):
    n_rows, n_cols = input_tensor.shape
    out = torch.empty(n_rows, dtype=torch.int64, device=input_tensor.device)
    if n_rows == 0:
        return out.unsqueeze(-1) if keepdim else out
    argmax_kernel[(n_rows,)](
        input_tensor,
        out,
        input_tensor.stride(0),
        input_tensor.stride(1),
        n_cols,
        BLOCK_SIZE=512,
    )
    return out.unsqueeze(-1) if keepdim else out
