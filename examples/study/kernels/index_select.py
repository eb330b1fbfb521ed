import torch
import triton
import triton.language as tl


@triton.jit
def index_select_kernel(x_ptr, index_ptr, out_ptr, size, picked, inner, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    column = offsets % inner
    which = (offsets // inner) % picked
    outer = offsets // (inner * picked)
    source = tl.load(index_ptr + which, mask=mask, other=0)
    x = tl.load(x_ptr + (outer * size + source) * inner + column, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)


def index_select(input, dim, index):
    x, index = input.contiguous(), index.contiguous()
    dim = dim % x.dim()
    shape = list(x.shape)
    size, picked = shape[dim], index.numel()
    shape[dim] = picked
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n > 0:
        inner = 1
        for length in shape[dim + 1 :]:
            inner *= length
        grid = (triton.cdiv(n, 512),)
        index_select_kernel[grid](x, index, out, size, picked, inner, n, BLOCK=512)
    return out
