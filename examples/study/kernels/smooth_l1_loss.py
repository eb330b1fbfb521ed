import torch
import triton
import triton.language as tl


@triton.jit
def smooth_l1_loss_kernel(x_ptr, y_ptr, terms_ptr, partial_ptr, n, beta, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    d = tl.abs(x - y)
    # With a beta of 0 no distance is below it, and nothing is divided by 0.
    safe = tl.where(beta > 0, beta, 1.0)
    terms = tl.where(d < beta, 0.5 * d * d / safe, d - 0.5 * beta)
    tl.store(terms_ptr + offsets, terms.to(terms_ptr.dtype.element_ty), mask=mask)
    tl.store(partial_ptr + pid, tl.sum(tl.where(mask, terms, 0.0), axis=0))


@triton.jit
def total_kernel(partial_ptr, out_ptr, count, divisor, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, count, BLOCK):
        here = start + lanes
        total += tl.load(partial_ptr + here, mask=here < count, other=0.0)
    result = tl.sum(total, axis=0) / divisor
    tl.store(out_ptr, result.to(out_ptr.dtype.element_ty))


def smooth_l1_loss(input, target, beta=1.0, reduction="mean"):
    x, y = input.contiguous(), target.contiguous()
    n = x.numel()
    terms = torch.empty_like(x)
    out = torch.full(
        (), float("nan") if reduction == "mean" else 0.0, dtype=x.dtype, device=x.device
    )
    if n > 0:
        count = triton.cdiv(n, 1024)
        partial = torch.empty(count, dtype=torch.float32, device=x.device)
        smooth_l1_loss_kernel[(count,)](x, y, terms, partial, n, float(beta), BLOCK=1024)
        divisor = float(n) if reduction == "mean" else 1.0
        total_kernel[(1,)](partial, out, count, divisor, BLOCK=512)
    return terms if reduction == "none" else out
