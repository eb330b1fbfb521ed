"""Reductions and what comes before them, as PyTorch computes it."""

import torch
import torch.nn.functional as F


def fused_add_mean(input, other, dim=None, alpha=1, keepdim=False, dtype=None, out=None):
    result = torch.mean(torch.add(input, other, alpha=alpha), dim, keepdim, dtype=dtype)
    return result if out is None else out.copy_(result)


def fused_exp_mean(input, dim=None, keepdim=False, dtype=None, out=None):
    result = torch.mean(torch.exp(input), dim, keepdim, dtype=dtype)
    return result if out is None else out.copy_(result)


def fused_gelu_min(input, approximate="none", dim=None, keepdim=False, out=None):
    activated = F.gelu(input, approximate=approximate)
    if dim is None:
        return torch.min(activated)
    return torch.min(activated, dim, keepdim)


def fused_gelu_std(input, dim=None, keepdim=False, correction=1, approximate="none", out=None):
    activated = F.gelu(input, approximate=approximate)
    result = torch.std(activated, dim, correction=correction, keepdim=keepdim)
    return result if out is None else out.copy_(result)
