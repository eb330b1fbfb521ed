"""Fusions with dropout in plain PyTorch."""

import torch
import torch.nn.functional as F


def fused_mul_add_logsoftmax_dropout_bmm(
    input1, input2, other, mat2, p=0.5, training=True, inplace=False, dim=-1, *, out=None
):
    logs = F.log_softmax(torch.add(torch.mul(input1, input2), other), dim=dim)
    return torch.bmm(F.dropout(logs, p, training, inplace), mat2, out=out)


def fused_mv_logsoftmax_dropout(
    input, vec, p=0.5, training=True, inplace=False, dim=0, *, out=None
):
    result = F.dropout(F.log_softmax(torch.mv(input, vec), dim=dim), p, training, inplace)
    return result if out is None else out.copy_(result)


def fused_transformer_block(
    input, weight1, weight2, residual, dropout_p=0.1, eps=1e-05, *, out=None
):
    shares = F.dropout(F.softmax(input @ weight1, dim=-1), p=dropout_p, training=True)
    mixed = shares @ weight2 + residual
    result = F.layer_norm(mixed, mixed.shape[-1:], eps=eps)
    return result if out is None else out.copy_(result)
