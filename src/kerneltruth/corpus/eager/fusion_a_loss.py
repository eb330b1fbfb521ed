"""Losses and what comes with them, as PyTorch computes it."""

import torch
import torch.nn.functional as F


def fused_cosine_embedding_loss_with_normalization(
    input1, input2, target, margin=0, reduction="mean"
):
    one, other = F.normalize(input1, dim=1), F.normalize(input2, dim=1)
    return F.cosine_embedding_loss(one, other, target, margin=margin, reduction=reduction)


def fused_cross_entropy_log_softmax(
    input,
    target,
    dim=1,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    return F.cross_entropy(
        F.log_softmax(input, dim=dim),
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def fused_cross_entropy_softmax_layernorm(
    logits,
    targets,
    normalized_shape,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
    eps=1e-5,
    *,
    out=None,
):
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    loss = F.cross_entropy(
        logits,
        targets,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
    output = F.layer_norm(torch.softmax(logits, -1), shape, eps=eps)
    return loss, output if out is None else out.copy_(output)
