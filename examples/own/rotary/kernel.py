import torch
import triton
import triton.language as tl


@triton.jit
def _rotate(x, cos, sin, out, length, HALF: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    place = row % length
    columns = tl.arange(0, BLOCK)
    mask = columns < HALF
    low = tl.load(x + row * 2 * HALF + columns, mask=mask)
    high = tl.load(x + row * 2 * HALF + HALF + columns, mask=mask)
    for part in tl.static_range(2):
        at = part * HALF + columns
        c = tl.load(cos + place * 2 * HALF + at, mask=mask)
        s = tl.load(sin + place * 2 * HALF + at, mask=mask)
        turned = low * c - high * s if part == 0 else high * c + low * s
        tl.store(out + row * 2 * HALF + at, turned, mask=mask)


def _rotated(x, cos, sin):
    x, out = x.contiguous(), torch.empty(x.shape, device=x.device, dtype=x.dtype)
    half = x.shape[-1] // 2
    _rotate[(x.numel() // (2 * half),)](
        *(x, cos, sin, out, x.shape[-2]), HALF=half, BLOCK=triton.next_power_of_2(half)
    )
    return out


def apply_rotary(q, k, cos, sin):
    cos, sin = cos.contiguous(), sin.contiguous()
    return _rotated(q, cos, sin), _rotated(k, cos, sin)
