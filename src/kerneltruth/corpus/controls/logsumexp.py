import torch
import triton
import triton.language as tl


@triton.jit
def logsumexp_kernel(
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
    cols = lanes
    x = tl.load(x_ptr + cols * stride_col, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    shift = tl.max(x, axis=0)
    # An infinite maximum is not subtracted: inf - inf is NaN.
    shift = tl.where(tl.abs(shift) == float("inf"), 0.0, shift)
    result = tl.log(tl.sum(tl.exp(x - shift), axis=0)) + shift
    tl.store(out_ptr + row, result.to(out_ptr.dtype.element_ty))


def logsumexp(input, dim=-1, keepdim=False):
    n_rows, n_cols = input.shape
    out = torch.empty(n_rows, dtype=input.dtype, device=input.device)
    if n_rows == 0:
        return out.unsqueeze(-1) if keepdim else out
    if n_cols == 0:
        out.fill_(-float("inf"))
        return out.unsqueeze(-1) if keepdim else out
    logsumexp_kernel[(n_rows,)](
        input,
        out,
        input.stride(0),
        input.stride(1),
        n_cols,
        BLOCK_SIZE=max(128, triton.next_power_of_2(n_cols)),
    )
    return out.unsqueeze(-1) if keepdim else out
