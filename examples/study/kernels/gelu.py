import torch
import triton
import triton.language as tl


@triton.jit
def tanh_f32(x):
    # exp(-2|x|) never overflows; a polynomial near 0 avoids the cancellation in 1 - z.
    z = tl.exp(-2.0 * tl.abs(x))
    large = (1.0 - z) / (1.0 + z)
    large = tl.where(x < 0, -large, large)
    s = x * x
    series = 2.0 / 15.0 + s * (-17.0 / 315.0 + s * (62.0 / 2835.0))
    small = x * (1.0 + s * (-1.0 / 3.0 + s * series))
    return tl.where(tl.abs(x) < 0.25, small, large)


@triton.jit
def gelu_kernel(
    x_ptr,
    out_ptr,
    n_elements,
    TANH: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    pid = tl.program_id(0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    if TANH:
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        y = 0.5 * x * (1.0 + tanh_f32(inner))
    else:
        y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


def gelu(input, approximate="none"):
    x = input.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements == 0:
        return out
    grid = (triton.cdiv(n_elements, 1024),)
    gelu_kernel[grid](x, out, n_elements, TANH=approximate == "tanh", BLOCK_SIZE=1024)
    return out
