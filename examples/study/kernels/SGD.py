import torch
import triton
import triton.language as tl


@triton.jit
def sgd_kernel(
    p_ptr,
    g_ptr,
    buf_ptr,
    new_p_ptr,
    new_buf_ptr,
    n,
    LR: tl.constexpr,
    MOMENTUM: tl.constexpr,
    DECAY: tl.constexpr,
    DAMPENING: tl.constexpr,
    HAS_BUF: tl.constexpr,
    USES: tl.constexpr,
    NESTEROV: tl.constexpr,
    WORK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    p = tl.load(p_ptr + offsets, mask=mask, other=0.0).to(WORK)
    g = tl.load(g_ptr + offsets, mask=mask, other=0.0).to(WORK)
    d = g + DECAY * p
    if USES:
        buf = tl.zeros([BLOCK], dtype=WORK)
        if HAS_BUF:
            buf = tl.load(buf_ptr + offsets, mask=mask, other=0.0).to(WORK)
        buf = MOMENTUM * buf + (1.0 - DAMPENING) * d
        tl.store(new_buf_ptr + offsets, buf.to(new_buf_ptr.dtype.element_ty), mask=mask)
        d = d + MOMENTUM * buf if NESTEROV else buf
    result = p - LR * d
    tl.store(new_p_ptr + offsets, result.to(new_p_ptr.dtype.element_ty), mask=mask)


def sgd_step(
    param,
    grad,
    momentum_buffer=None,
    lr=0.1,
    momentum=0.9,
    weight_decay=0.0,
    dampening=0.0,
    nesterov=False,
):
    p, g = param.contiguous(), grad.contiguous()
    has = momentum_buffer is not None
    uses = momentum > 0
    buf = momentum_buffer.contiguous() if has else p
    new_p = torch.empty_like(p)
    new_buf = torch.empty_like(p) if uses else p
    n = p.numel()
    work = tl.float64 if p.dtype == torch.float64 else tl.float32
    if n > 0:
        sgd_kernel[(triton.cdiv(n, 512),)](
            p,
            g,
            buf,
            new_p,
            new_buf,
            n,
            LR=lr,
            MOMENTUM=momentum,
            DECAY=weight_decay,
            DAMPENING=dampening,
            HAS_BUF=has,
            USES=uses,
            NESTEROV=nesterov,
            WORK=work,
            BLOCK=512,
        )
    return (new_p, new_buf) if uses else (new_p, None)
