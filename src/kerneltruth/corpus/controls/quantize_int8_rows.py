"""Each row by its largest magnitude; rows of zeros and NaN are looked after."""

import torch
import triton
import triton.language as tl


@triton.jit
def round_half_even(x):
    below = tl.floor(x)
    rest = x - below
    odd = below - 2.0 * tl.floor(below * 0.5) != 0
    up = (rest > 0.5) | ((rest == 0.5) & odd)
    return tl.where(up, below + 1.0, below)


@triton.jit
def quantize_rows_kernel(x_ptr, out_ptr, scale_ptr, columns, x_row, x_column, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * x_row + offsets * x_column, mask=mask, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(x), axis=0)
    spoiled = tl.max((x != x).to(tl.int32), axis=0) != 0
    largest = tl.where(spoiled, float("nan"), largest)
    # The ratio first: 127 / largest would overflow for a tiny row, largest / 127 vanish.
    ratio = tl.div_rn(x, tl.where(largest == 0, 1.0, largest))
    q = round_half_even(ratio * 127.0)
    q = tl.where(q != q, 0.0, q)
    tl.store(out_ptr + row * columns + offsets, q.to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, largest / 127.0)


def quantize_int8_rows(input):
    rows, columns = input.shape
    out = torch.empty((rows, columns), dtype=torch.int8, device=input.device)
    scale = torch.zeros(rows, dtype=torch.float32, device=input.device)
    if out.numel():
        quantize_rows_kernel[(rows,)](
            input,
            out,
            scale,
            columns,
            input.stride(0),
            input.stride(1),
            BLOCK=max(128, triton.next_power_of_2(columns)),
        )
    return out, scale
