import torch
import triton
import triton.language as tl


@triton.jit
def layernorm_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    n,
    eps,
    HAS_W: tl.constexpr,
    HAS_B: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n
    d = tl.where(mask, x - mean, 0.0)
    y = d / tl.sqrt(tl.sum(d * d, axis=0) / n + eps)
    if HAS_W:
        y = y * tl.load(w_ptr + cols, mask=mask, other=0.0)
    if HAS_B:
        y = y + tl.load(b_ptr + cols, mask=mask, other=0.0)
    tl.store(out_ptr + row * n + cols, y, mask=mask)


def layernorm_w8a8(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    x = input.contiguous()
    n = 1
    for length in normalized_shape:
        n *= length
    out = torch.empty_like(x)
    if out.numel() > 0:
        w = x if weight is None else weight.contiguous()
        b = x if bias is None else bias.contiguous()
        layernorm_kernel[(out.numel() // n,)](
            x,
            w,
            b,
            out,
            n,
            eps,
            HAS_W=weight is not None,
            HAS_B=bias is not None,
            BLOCK=triton.next_power_of_2(n),
        )
    return out
