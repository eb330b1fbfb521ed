import torch
import triton
import triton.language as tl


@triton.jit
def kl_div_kernel(x_ptr, t_ptr, terms_ptr, partial_ptr, n, LOG: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    t = tl.load(t_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    if LOG:
        terms = tl.exp(t) * (t - x)
    else:
        # A target of 0 adds 0, though its logarithm is not finite.
        safe = tl.where(t > 0, t, 1.0)
        terms = tl.where(t == 0, 0.0, t * (tl.log(safe) - x))
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


def kl_div(input, target, reduction="batchmean", log_target=False):
    x, t = input.contiguous(), target.contiguous()
    n = x.numel()
    terms = torch.empty_like(x)
    if reduction == "none":
        divisor = 1.0
    elif reduction == "mean":
        divisor = float(n)
    else:
        divisor = float(x.shape[0]) if reduction == "batchmean" else 1.0
    empty = float("nan") if divisor == 0 else 0.0
    out = torch.full((), empty, dtype=x.dtype, device=x.device)
    if n > 0:
        count = triton.cdiv(n, 1024)
        partial = torch.empty(count, dtype=torch.float32, device=x.device)
        kl_div_kernel[(count,)](x, t, terms, partial, n, LOG=log_target, BLOCK=1024)
        total_kernel[(1,)](partial, out, count, divisor, BLOCK=512)
    return terms if reduction == "none" else out
