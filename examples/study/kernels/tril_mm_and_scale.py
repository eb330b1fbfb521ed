import torch
import triton
import triton.language as tl


@triton.jit
def tril_mm_kernel(
    a_ptr, b_ptr, c_ptr, M, N, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, M, BK):
        k = start + tl.arange(0, BK)
        # What stands above the diagonal is never read.
        low = (rows[:, None] < M) & (k[None, :] <= rows[:, None])
        inside = (k[:, None] < M) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * M + k[None, :], mask=low, other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :], mask=inside, other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    result = (acc * scale).to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], result, mask=mask)


def tril_mm_and_scale(A, B, alpha=1.0, beta=1.0):
    A, B = A.contiguous(), B.contiguous()
    M, N = B.shape
    out = torch.empty((M, N), dtype=B.dtype, device=B.device)
    if out.numel() > 0:
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
        tril_mm_kernel[grid](A, B, out, M, N, float(alpha * beta), BM=32, BN=32, BK=32)
    return out
