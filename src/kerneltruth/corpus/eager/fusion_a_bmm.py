"""Batched products and what follows them, as PyTorch computes it."""

import torch
import torch.nn.functional as F


def fused_bmm_dropout_gelu(
    input1, input2, p=0.5, training=True, inplace=False, approximate="none", *, out=None
):
    product = torch.bmm(input1, input2)
    dropped = F.dropout(product, p=p, training=training, inplace=inplace)
    result = F.gelu(dropped, approximate=approximate)
    return result if out is None else out.copy_(result)


def fused_bmm_rmsnorm_gelu_dropout(
    input1,
    input2,
    normalized_shape,
    dropout_p=0.1,
    eps=1e-5,
    training=True,
    approximate="none",
    *,
    out=None,
):
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    normalized = F.rms_norm(torch.bmm(input1, input2), shape, eps=eps)
    activated = F.gelu(normalized, approximate=approximate)
    result = F.dropout(activated, p=dropout_p, training=training)
    return result if out is None else out.copy_(result)


def fused_bmm_rmsnorm_gelu_dropout_sub(
    input1,
    input2,
    other,
    normalized_shape,
    dropout_p=0.5,
    training=True,
    approximate="none",
    eps=1e-5,
    *,
    out=None,
):
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    normalized = F.rms_norm(torch.bmm(input1, input2), shape, eps=eps)
    activated = F.gelu(normalized, approximate=approximate)
    result = F.dropout(activated, p=dropout_p, training=training) - other
    return result if out is None else out.copy_(result)
