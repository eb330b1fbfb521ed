"""Source positions by integer division."""

import torch
import triton
import triton.language as tl


@triton.jit
def nearest_kernel(x_ptr, out_ptr, n, height, width, out_height, out_width, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    channel = offsets // (out_height * out_width)
    y = (offsets // out_width % out_height) * height // out_height
    x = (offsets % out_width) * width // out_width
    value = tl.load(x_ptr + (channel * height + y) * width + x, mask=mask)
    tl.store(out_ptr + offsets, value, mask=mask)


def interpolate_nearest(input, size=(32, 32)):
    x = input.contiguous()
    channels, height, width = x.shape
    out = torch.empty((channels, *size), dtype=x.dtype, device=x.device)
    n = out.numel()
    if n:
        nearest_kernel[(triton.cdiv(n, 1024),)](
            x, out, n, height, width, size[0], size[1], BLOCK=1024
        )
    return out
