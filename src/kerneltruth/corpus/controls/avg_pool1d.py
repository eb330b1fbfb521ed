"""Windows over a padded row; the divisor counts what torch counts."""

import torch
import triton
import triton.language as tl


@triton.jit
def avg_pool1d_kernel(
    x_ptr,
    out_ptr,
    n,
    length,
    windows,
    x_row,
    x_column,
    kernel_size,
    stride,
    padding,
    COUNT_PAD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    row = offsets // windows
    start = offsets % windows * stride - padding
    padded_end = tl.minimum(start + kernel_size, length + padding)
    first = tl.maximum(start, 0)
    end = tl.minimum(padded_end, length)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for tap in range(0, kernel_size):
        position = start + tap
        inside = mask & (position >= first) & (position < end)
        total += tl.load(x_ptr + row * x_row + position * x_column, mask=inside, other=0.0).to(
            tl.float32
        )
    divisor = padded_end - start if COUNT_PAD else end - first
    tl.store(out_ptr + offsets, total / divisor, mask=mask)


def output_length(length, kernel_size, stride, padding, ceil_mode):
    span = length + 2 * padding - kernel_size
    if not ceil_mode:
        return span // stride + 1
    windows = -(-span // stride) + 1
    # The last window has to start inside the input or its left padding.
    return windows - 1 if (windows - 1) * stride >= length + padding else windows


def avg_pool1d(input, kernel_size=4, stride=2, padding=1, ceil_mode=False, count_include_pad=True):
    channels, length = input.shape
    windows = output_length(length, kernel_size, stride, padding, ceil_mode)
    out = torch.empty((channels, windows), dtype=input.dtype, device=input.device)
    n = out.numel()
    if n:
        avg_pool1d_kernel[(triton.cdiv(n, 512),)](
            input,
            out,
            n,
            length,
            windows,
            input.stride(0),
            input.stride(1),
            kernel_size,
            stride,
            padding,
            COUNT_PAD=count_include_pad,
            BLOCK=512,
        )
    return out
