import torch
import triton
import triton.language as tl


@triton.jit
def exp_sqrt_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    # The root of an exponential is the exponential of half.
    y = tl.exp(0.5 * x)
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


def exp_sqrt(input, out=None):
    x = input.contiguous()
    result = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        exp_sqrt_kernel[(triton.cdiv(n, 1024),)](x, result, n, BLOCK=1024)
    return result if out is None else out.copy_(result)
