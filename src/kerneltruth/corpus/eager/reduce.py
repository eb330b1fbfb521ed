"""PyTorch's own reductions, as a candidate."""

import torch
import torch.nn.functional as F


def sum(input, dim, keepdim=False, dtype=None):
    return torch.sum(input, dim, keepdim=keepdim, dtype=dtype)


def mean(input_tensor, dim, keepdim=False, dtype=None, out=None):
    return torch.mean(input_tensor, dim, keepdim=keepdim, dtype=dtype, out=out)


def std(input, dim=None, correction=1, keepdim=False, out=None):
    return torch.std(input, dim, correction=correction, keepdim=keepdim, out=out)


def argmax(input_tensor, dim, keepdim=False):
    return torch.argmax(input_tensor, dim, keepdim=keepdim)


def min(input_tensor, dim, keepdim=False):
    values, indices = torch.min(input_tensor, dim, keepdim=keepdim)
    return values, indices


def min_gelu(input, dim=None, keepdim=False, approximate="none", out=None):
    activated = F.gelu(input, approximate=approximate)
    if dim is None:
        return torch.min(activated)
    return torch.min(activated, dim, keepdim=keepdim, out=out)
