import torch
import triton
import triton.language as tl


@triton.jit
def softplus_kernel(
    x_ptr,
    out_ptr,
    n_elements,
    beta,
    threshold,
    BLOCK_SIZE: tl.constexpr,
):
    pid = tl.program_id(0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    scaled = x * beta
    z = tl.exp(-tl.abs(scaled))
    u = 1.0 + z
    # log1p(z): log(u) is corrected for the rounding of 1 + z.
    log1p = tl.where(u == 1.0, z, tl.log(u) * (z / tl.where(u == 1.0, 1.0, u - 1.0)))
    positive = tl.where(scaled > 0, scaled, 0.0)
    y = tl.where(scaled > threshold, x, (positive + log1p) / beta)
    # The comparison above is false for NaN, which has been dropped from `positive`.
    y = tl.where(x != x, x, y)
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


def softplus(input, beta=1.0, threshold=20.0):
    x = input.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements == 0:
        return out
    grid = (triton.cdiv(n_elements, 1024),)
    softplus_kernel[grid](x, out, n_elements, beta, threshold, BLOCK_SIZE=1024)
    return out
