import torch
import triton
import triton.language as tl

GROUP = 32


@triton.jit
def _multiply(
    x, packed, scales, zeros, out, M, N, K,
    GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask, column_mask = rows < M, columns < N
    terms = tl.arange(0, GROUP)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for group in range(K // GROUP):
        k = group * GROUP + terms
        left = tl.load(x + rows[:, None] * K + k, mask=row_mask[:, None], other=0.0)
        places = columns[None, :] * (K // 2) + k[:, None] // 2
        both = tl.load(packed + places, mask=column_mask[None, :], other=0)
        four = (both >> (k[:, None] % 2 * 4).to(tl.uint8)) & 15
        at = columns * (K // GROUP) + group
        scale = tl.load(scales + at, mask=column_mask, other=0.0)
        zero = tl.load(zeros + at, mask=column_mask, other=0.0)
        right = (four.to(zero.dtype) - zero[None, :]) * scale[None, :]
        total += tl.dot(left, right.to(left.dtype), input_precision="ieee")
    mask = row_mask[:, None] & column_mask[None, :]
    tl.store(out + rows[:, None] * N + columns[None, :], total, mask=mask)


def w4_matmul(x, packed, scales, zeros):
    x, packed, scales, zeros = (t.contiguous() for t in (x, packed, scales, zeros))
    (M, K), N = x.shape, packed.shape[0]
    out = torch.empty(M, N, device=x.device, dtype=x.dtype)
    _multiply[(triton.cdiv(M, 16), triton.cdiv(N, 32))](
        *(x, packed, scales, zeros, out, M, N, K), GROUP=GROUP, BLOCK_M=16, BLOCK_N=32
    )
    return out
