import torch
import triton
import triton.language as tl


@triton.jit
def lion_kernel(
    p_ptr,
    g_ptr,
    m_ptr,
    new_p_ptr,
    new_m_ptr,
    n,
    LR: tl.constexpr,
    BETA1: tl.constexpr,
    BETA2: tl.constexpr,
    DECAY: tl.constexpr,
    WORK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    p = tl.load(p_ptr + offsets, mask=mask, other=0.0).to(WORK)
    g = tl.load(g_ptr + offsets, mask=mask, other=0.0).to(WORK)
    m = tl.load(m_ptr + offsets, mask=mask, other=0.0).to(WORK)
    c = BETA1 * m + (1.0 - BETA1) * g
    sign = tl.where(c > 0, 1.0, tl.where(c < 0, -1.0, 0.0)).to(WORK)
    p = p * (1.0 - LR * DECAY) - LR * sign
    m = BETA2 * m + (1.0 - BETA2) * g
    tl.store(new_p_ptr + offsets, p.to(new_p_ptr.dtype.element_ty), mask=mask)
    tl.store(new_m_ptr + offsets, m.to(new_m_ptr.dtype.element_ty), mask=mask)


def lion_step(param, grad, exp_avg, lr=1e-4, beta1=0.9, beta2=0.99, weight_decay=0.0):
    p, g, m = param.contiguous(), grad.contiguous(), exp_avg.contiguous()
    new_p, new_m = torch.empty_like(p), torch.empty_like(m)
    n = p.numel()
    work = tl.float64 if p.dtype == torch.float64 else tl.float32
    if n > 0:
        lion_kernel[(triton.cdiv(n, 512),)](
            p,
            g,
            m,
            new_p,
            new_m,
            n,
            LR=lr,
            BETA1=beta1,
            BETA2=beta2,
            DECAY=weight_decay,
            WORK=work,
            BLOCK=512,
        )
    return new_p, new_m
