import torch
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, n_cols, WORK: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=WORK)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
        total += x.to(WORK)
    result = tl.sum(total, axis=0) / n_cols
    tl.store(out_ptr + row, result.to(out_ptr.dtype.element_ty))


def mean(input_tensor, dim=-1, keepdim=False, dtype=None, out=None):
    x = input_tensor if dtype is None else input_tensor.to(dtype)
    rank = x.dim()
    if dim is None:
        dims = tuple(range(rank))
    else:
        dims = tuple(d % rank for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))
    others = [d for d in range(rank) if d not in dims]
    kept = [x.shape[d] for d in others]
    x = x.permute(*others, *dims).contiguous()
    n_cols = 1
    for d in range(len(others), rank):
        n_cols *= x.shape[d]
    if n_cols == 0:
        result = torch.full(kept, float("nan"), dtype=x.dtype, device=x.device)
    else:
        result = torch.empty(kept, dtype=x.dtype, device=x.device)
        work = tl.float64 if x.dtype == torch.float64 else tl.float32
        if result.numel() > 0:
            mean_kernel[(result.numel(),)](x, result, n_cols, WORK=work, BLOCK=512)
    if keepdim:
        for d in sorted(dims):
            result = result.unsqueeze(d)
    return result if out is None else out.copy_(result)
