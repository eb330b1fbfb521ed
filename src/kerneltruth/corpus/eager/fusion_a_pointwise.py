"""Elementwise fusions as PyTorch computes them."""

import torch
import torch.nn.functional as F


def fused_add_gelu(input, other, alpha=1, approximate="none", out=None):
    result = F.gelu(torch.add(input, other, alpha=alpha), approximate=approximate)
    return result if out is None else out.copy_(result)


def fused_cos_signbit(input):
    cosine = torch.cos(input)
    return cosine, torch.signbit(cosine)


def fused_hardshrink_dropout(input, p=0.5, training=True, inplace=False, lambd=0.5):
    return F.hardshrink(F.dropout(input, p=p, training=training, inplace=inplace), lambd)


def fused_hstack_div(tensors, divisor, *, rounding_mode=None, out=None):
    result = torch.div(torch.hstack(tensors), divisor, rounding_mode=rounding_mode)
    return result if out is None else out.copy_(result)
