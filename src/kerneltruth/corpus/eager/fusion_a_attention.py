"""Attention as PyTorch computes it."""

import torch.nn.functional as F


def attention(q, k, v, causal=False, softmax_scale=None, *, out=None):
    result = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=softmax_scale)
    return result if out is None else out.copy_(result)
