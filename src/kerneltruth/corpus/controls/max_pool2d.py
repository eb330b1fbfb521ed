"""The largest of each window; what lies outside is minus infinity, and NaN is kept."""

import torch
import triton
import triton.language as tl


@triton.jit
def max_pool2d_kernel(
    x_ptr,
    out_ptr,
    n,
    height,
    width,
    out_height,
    out_width,
    stride,
    padding,
    kernel_size,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    channel = offsets // (out_height * out_width)
    top = offsets // out_width % out_height * stride - padding
    left = offsets % out_width * stride - padding
    best = tl.full([BLOCK], float("-inf"), dtype=tl.float32)
    for i in range(kernel_size):
        for j in range(kernel_size):
            y = top + i
            x = left + j
            inside = mask & (y >= 0) & (y < height) & (x >= 0) & (x < width)
            value = tl.load(
                x_ptr + (channel * height + y) * width + x, mask=inside, other=float("-inf")
            ).to(tl.float32)
            best = tl.where((value > best) | (value != value), value, best)
    tl.store(out_ptr + offsets, best, mask=mask)


def max_pool2d(input, kernel_size=3, stride=2, padding=1):
    x = input.contiguous()
    channels, height, width = x.shape
    out_height = (height + 2 * padding - kernel_size) // stride + 1
    out_width = (width + 2 * padding - kernel_size) // stride + 1
    out = torch.empty((channels, out_height, out_width), dtype=x.dtype, device=x.device)
    n = out.numel()
    if n:
        max_pool2d_kernel[(triton.cdiv(n, 1024),)](
            x,
            out,
            n,
            height,
            width,
            out_height,
            out_width,
            stride,
            padding,
            kernel_size,
            BLOCK=1024,
        )
    return out
