import torch
import triton
import triton.language as tl


@triton.jit
def mul_sub_kernel(x_ptr, m_ptr, s_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    m = tl.load(m_ptr + offsets, mask=mask).to(tl.float32)
    s = tl.load(s_ptr + offsets, mask=mask).to(tl.float32)
    result = x * m - alpha * s
    tl.store(out_ptr + offsets, result.to(out_ptr.dtype.element_ty), mask=mask)


def fused_mul_sub(input, other_mul, other_sub, alpha=1, out=None):
    if not isinstance(other_mul, torch.Tensor):
        other_mul = torch.full_like(input, other_mul, dtype=torch.float32)
    if not isinstance(other_sub, torch.Tensor):
        other_sub = torch.full_like(input, other_sub, dtype=torch.float32)
    x = input.contiguous()
    m = other_mul.expand(x.shape).contiguous()
    s = other_sub.expand(x.shape).contiguous()
    result = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        grid = (triton.cdiv(n, 1024),)
        mul_sub_kernel[grid](x, m, s, result, n, float(alpha), BLOCK=1024)
    return result if out is None else out.copy_(result)
