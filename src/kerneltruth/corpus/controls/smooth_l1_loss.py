"""Quadratic near zero and linear beyond beta, with a partial sum per program."""

import torch
import triton
import triton.language as tl


@triton.jit
def smooth_l1_kernel(x_ptr, y_ptr, loss_ptr, partial_ptr, beta, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    d = tl.abs(x - y)
    loss = tl.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)
    tl.store(loss_ptr + offsets, loss, mask=mask)
    tl.store(partial_ptr + tl.program_id(0), tl.sum(tl.where(mask, loss, 0.0), axis=0))


def smooth_l1_loss(input, target, beta=1.0, reduction="mean"):
    x, y = input.contiguous(), target.contiguous()
    losses = torch.empty_like(x)
    n = x.numel()
    programs = triton.cdiv(n, 512)
    partial = torch.empty(programs, dtype=torch.float32, device=x.device)
    if n:
        smooth_l1_kernel[(programs,)](x, y, losses, partial, float(beta), n, BLOCK=512)
    if reduction == "none":
        return losses
    total = partial.sum()
    return (total / n if reduction == "mean" else total).to(x.dtype)
