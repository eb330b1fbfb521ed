"""Look-ups and what follows them, as PyTorch computes it."""

import torch
import torch.nn.functional as F


def fused_embedding_add_tanh(
    input_indices,
    weight,
    other,
    *,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
    out=None,
):
    rows = F.embedding(
        input_indices, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
    )
    result = torch.tanh(rows + other)
    return result if out is None else out.copy_(result)


def fused_gather_masked_fill(input, dim, index, mask, value, *, sparse_grad=False, out=None):
    result = torch.gather(input, dim, index, sparse_grad=sparse_grad).masked_fill(mask, value)
    return result if out is None else out.copy_(result)


def fused_index_select_eq(input, dim, index, other, *, out=None):
    result = torch.eq(torch.index_select(input, dim, index), other)
    return result if out is None else out.copy_(result)
