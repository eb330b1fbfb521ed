import torch
import triton
import triton.language as tl


@triton.jit
def elu_kernel(
    x_ptr,
    out_ptr,
    n_elements,
    alpha,
    BLOCK_SIZE: tl.constexpr,
):
    pid = tl.program_id(0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = x
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


def elu(input, alpha=1.0):
    x = input.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements == 0:
        return out
    grid = (triton.cdiv(n_elements, 1024),)
    elu_kernel[grid](x, out, n_elements, alpha, BLOCK_SIZE=1024)
    return out
