import torch
import triton
import triton.language as tl


@triton.jit
def tanh(x):
    z = tl.exp(-2.0 * tl.abs(x))
    large = (1.0 - z) / (1.0 + z)
    large = tl.where(x < 0, -large, large)
    s = x * x
    series = 2.0 / 15.0 + s * (-17.0 / 315.0 + s * (62.0 / 2835.0))
    small = x * (1.0 + s * (-1.0 / 3.0 + s * series))
    return tl.where(tl.abs(x) < 0.25, small, large)


@triton.jit
def sub_gelu_kernel(x_ptr, y_ptr, out_ptr, n, alpha, TANH: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    d = x - alpha * y
    if TANH:
        result = 0.5 * d * (1.0 + tanh(0.7978845608028654 * (d + 0.044715 * d * d * d)))
    else:
        result = 0.5 * d * (1.0 + tl.erf(d * 0.7071067811865476))
    tl.store(out_ptr + offsets, result.to(out_ptr.dtype.element_ty), mask=mask)


def fused_sub_gelu(input, other, alpha=1, approximate="none", out=None):
    if not isinstance(other, torch.Tensor):
        other = torch.full_like(input, other, dtype=torch.float32)
    x = input.contiguous()
    y = other.expand(x.shape).contiguous()
    result = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        grid = (triton.cdiv(n, 1024),)
        tanh_form = approximate == "tanh"
        sub_gelu_kernel[grid](x, y, result, n, float(alpha), TANH=tanh_form, BLOCK=1024)
    return result if out is None else out.copy_(result)
