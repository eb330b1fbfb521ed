import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    best = tl.load(x_ptr + row * n_cols)
    best_index = 0
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        # Beyond the end the first element stands again, at an index that never wins.
        x = tl.load(x_ptr + row * n_cols + tl.where(cols < n_cols, cols, 0))
        nan_here = tl.min(tl.where((x != x) & (cols < n_cols), cols, n_cols), axis=0)
        if (best == best) & (nan_here < n_cols):
            best_index = nan_here
            best = tl.load(x_ptr + row * n_cols + nan_here)
        elif best == best:
            block_best = tl.max(x, axis=0).to(x.dtype)
            index = tl.min(tl.where((x == block_best) & (cols < n_cols), cols, n_cols), axis=0)
            # Strictly greater: the first of equal maxima wins.
            if block_best > best:
                best = block_best
                best_index = index
    tl.store(out_ptr + row, best_index.to(tl.int64))


def argmax(input_tensor, dim=-1, keepdim=False):
    x = input_tensor
    rank = x.dim()
    if dim is None:
        x = x.contiguous().reshape(1, -1)
        kept = []
    else:
        x = x.movedim(dim, -1).contiguous()
        kept = list(x.shape[:-1])
    out = torch.empty(kept, dtype=torch.int64, device=x.device)
    if out.numel() > 0:
        argmax_kernel[(out.numel(),)](x, out, x.shape[-1], BLOCK=512)
    if keepdim:
        out = out.reshape([1] * rank) if dim is None else out.unsqueeze(dim)
    return out
