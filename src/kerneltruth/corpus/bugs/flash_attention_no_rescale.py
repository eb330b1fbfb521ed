import torch
import triton
import triton.language as tl


@triton.jit
def flash_attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    M,
    N,
    D,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    q = tl.load(
        q_ptr + rows[:, None] * D + d[None, :],
        mask=(rows[:, None] < M) & (d[None, :] < D),
        other=0.0,
    )
    running_max = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    running_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        kv_mask = (cols[:, None] < N) & (d[None, :] < D)
        k = tl.load(k_ptr + cols[:, None] * D + d[None, :], mask=kv_mask, other=0.0)
        v = tl.load(v_ptr + cols[:, None] * D + d[None, :], mask=kv_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(cols[None, :] < N, scores, -float("inf"))
        new_max = tl.maximum(running_max, tl.max(scores, axis=1))
        # A row without a finite score so far: subtract 0, so that its weights are 0, not NaN.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        weights = tl.exp(scores - shift[:, None])
        rescale = tl.exp(running_max - shift)
        running_sum = running_sum * rescale + tl.sum(weights, axis=1)
        acc += tl.dot(weights, v.to(tl.float32), input_precision="ieee")
        running_max = new_max
    out = acc / running_sum[:, None]
    tl.store(
        out_ptr + rows[:, None] * D + d[None, :],
        out.to(out_ptr.dtype.element_ty),
        mask=(rows[:, None] < M) & (d[None, :] < D),
    )


def attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    M, D = q.shape
    N = k.shape[0]
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out
    BLOCK_M, BLOCK_N = 16, 16
    flash_attention_kernel[(triton.cdiv(M, BLOCK_M),)](
        q,
        k,
        v,
        out,
        M,
        N,
        D,
        1.0 / D**0.5,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=max(16, triton.next_power_of_2(D)),
    )
    return out
