import torch
import triton
import triton.language as tl


@triton.jit
def mv_sigmoid_sub_kernel(
    a_ptr, v_ptr, other_ptr, out_ptr, K, other_step, alpha, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, K, BLOCK):
        k = start + lanes
        mask = k < K
        a = tl.load(a_ptr + row * K + k, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + k, mask=mask, other=0.0).to(tl.float32)
        total += a * v
    dot = tl.sum(total, axis=0)
    z = tl.exp(-tl.abs(dot))
    gate = tl.where(dot >= 0, 1.0 / (1.0 + z), z / (1.0 + z))
    result = gate - alpha * tl.load(other_ptr + row * other_step).to(tl.float32)
    tl.store(out_ptr + row, result.to(out_ptr.dtype.element_ty))


def fused_mv_sigmoid_sub(input, vec, other, alpha=1, out=None):
    if not isinstance(other, torch.Tensor):
        other = torch.full((1,), other, dtype=torch.float32, device=vec.device)
    a, v, other = input.contiguous(), vec.contiguous(), other.contiguous()
    M, K = a.shape
    result = torch.empty(M, dtype=a.dtype, device=a.device)
    if M > 0:
        # One element of `other` serves all rows.
        step = 1 if other.numel() > 1 else 0
        mv_sigmoid_sub_kernel[(M,)](a, v, other, result, K, step, float(alpha), BLOCK=256)
    return result if out is None else out.copy_(result)
