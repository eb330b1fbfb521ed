import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(a_ptr, x_ptr, y_ptr, n, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + lanes
        mask = cols < n
        a = tl.load(a_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        total += a * x
    tl.store(y_ptr + row, tl.abs(scale * tl.sum(total, axis=0)))


@triton.jit
def norm_kernel(y_ptr, out_ptr, n, p, INF: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    y = tl.load(y_ptr + lanes, mask=lanes < n, other=0.0)
    largest = tl.max(y, axis=0)
    if INF:
        result = largest
    else:
        # Relative to the largest, so that no power overflows.
        safe = tl.where(largest > 0, largest, 1.0)
        r = y / safe
        powers = tl.where(r > 0, tl.exp(p * tl.log(tl.where(r > 0, r, 1.0))), 0.0)
        total = tl.sum(powers, axis=0)
        result = largest * tl.exp(tl.log(tl.where(total > 0, total, 1.0)) / p)
    # A maximum passes NaN over.
    lost = tl.sum(tl.where(y != y, 1, 0), axis=0)
    result = tl.where(lost > 0, float("nan"), result)
    tl.store(out_ptr, result.to(out_ptr.dtype.element_ty))


def symmetric_matrix_vector_norm(A, x, alpha=1.0, beta=0.5, p=2.0):
    A, x = A.contiguous(), x.contiguous()
    n = x.numel()
    out = torch.zeros((), dtype=x.dtype, device=x.device)
    if n > 0:
        y = torch.empty(n, dtype=torch.float32, device=x.device)
        row_kernel[(n,)](A, x, y, n, float(alpha * (1 + beta)), BLOCK=256)
        infinite = p == float("inf")
        norm_kernel[(1,)](
            y, out, n, 1.0 if infinite else float(p), INF=infinite, BLOCK=triton.next_power_of_2(n)
        )
    return out
