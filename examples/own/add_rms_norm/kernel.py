import torch
import triton
import triton.language as tl


@triton.jit
def _add_rms_norm(x, residual, weight, out, total, hidden, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    columns = tl.arange(0, BLOCK)
    mask = columns < hidden
    added = tl.load(x + row + columns, mask=mask, other=0.0)
    added += tl.load(residual + row + columns, mask=mask, other=0.0)
    tl.store(total + row + columns, added, mask=mask)
    wide = added.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide) / hidden + eps)
    factor = tl.load(weight + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row + columns, wide * scale * factor, mask=mask)


def fused_add_rms_norm(x, residual, weight, eps):
    x, residual, weight = x.contiguous(), residual.contiguous(), weight.contiguous()
    out, total = torch.empty_like(x), torch.empty_like(x)
    hidden = x.shape[-1]
    _add_rms_norm[(x.numel() // hidden,)](
        *(x, residual, weight, out, total, hidden, eps), BLOCK=triton.next_power_of_2(hidden)
    )
    return out, total
