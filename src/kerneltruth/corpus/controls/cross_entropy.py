"""Row losses in one kernel, with the weights they count by; their sums are divided on the host."""

import torch
import triton
import triton.language as tl


@triton.jit
def log_softmax(x, mask):
    x = tl.where(mask, x, float("-inf"))
    shifted = x - tl.max(x, axis=1)[:, None]
    return shifted - tl.log(tl.sum(tl.exp(shifted), axis=1))[:, None]


@triton.jit
def cross_entropy_kernel(
    x_ptr,
    target_ptr,
    weight_ptr,
    loss_ptr,
    count_ptr,
    rows,
    classes,
    x_row,
    x_column,
    ignore_index,
    smoothing,
    HAS_WEIGHT: tl.constexpr,
    SMOOTH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_C)
    target = tl.load(target_ptr + row, mask=row < rows, other=0)
    inside = (row < rows)[:, None] & (column < classes)[None, :]
    x = tl.load(
        x_ptr + row[:, None] * x_row + column[None, :] * x_column, mask=inside, other=0.0
    ).to(tl.float32)
    logs = log_softmax(x, (column < classes)[None, :])
    if HAS_WEIGHT:
        weight = tl.load(weight_ptr + column, mask=column < classes, other=0.0).to(tl.float32)
    else:
        weight = tl.full([BLOCK_C], 1.0, tl.float32)
    hit = column[None, :] == target[:, None]
    own = tl.sum(tl.where(hit, weight[None, :], 0.0), axis=1)
    loss = -own * tl.sum(tl.where(hit, logs, 0.0), axis=1)
    if SMOOTH:
        spread = -tl.sum(tl.where(inside, weight[None, :] * logs, 0.0), axis=1)
        loss = (1 - smoothing) * loss + smoothing / classes * spread
    counted = (row < rows) & (target != ignore_index)
    tl.store(loss_ptr + row, tl.where(counted, loss, 0.0), mask=row < rows)
    tl.store(count_ptr + row, tl.where(counted, own, 0.0), mask=row < rows)


def cross_entropy(input, target, weight=None, ignore_index=-100, label_smoothing=0.0):
    rows, classes = input.shape
    target = target.contiguous()
    weight = None if weight is None else weight.contiguous()
    loss = torch.empty(rows, dtype=torch.float32, device=input.device)
    count = torch.empty(rows, dtype=torch.float32, device=input.device)
    block_c = max(128, triton.next_power_of_2(classes))
    block_m = max(1, min(8, 4096 // block_c))
    if rows:
        cross_entropy_kernel[(triton.cdiv(rows, block_m),)](
            input,
            target,
            input if weight is None else weight,
            loss,
            count,
            rows,
            classes,
            input.stride(0),
            input.stride(1),
            ignore_index,
            label_smoothing,
            HAS_WEIGHT=weight is not None,
            SMOOTH=label_smoothing > 0,
            BLOCK_M=block_m,
            BLOCK_C=block_c,
        )
    return (loss.sum() / count.sum()).to(input.dtype)
