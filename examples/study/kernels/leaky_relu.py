import torch
import triton
import triton.language as tl


@triton.jit
def leaky_relu_kernel(
    x_ptr, out_ptr, n, SLOPE: tl.constexpr, WORK: tl.constexpr, BLOCK: tl.constexpr
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(WORK)
    y = tl.where(x < 0, x * SLOPE, x)
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    x = input.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    work = tl.float64 if x.dtype == torch.float64 else tl.float32
    if n > 0:
        grid = (triton.cdiv(n, 1024),)
        leaky_relu_kernel[grid](x, out, n, SLOPE=negative_slope, WORK=work, BLOCK=1024)
    return out
