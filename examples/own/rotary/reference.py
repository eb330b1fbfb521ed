import torch


def rotary(q, k, cos, sin):
    """Rotary position embedding of queries and keys, halves rotated as in Llama."""
    return q * cos + _rotated(q) * sin, k * cos + _rotated(k) * sin


def _rotated(x):
    low, high = x.chunk(2, dim=-1)
    return torch.cat((-high, low), dim=-1)


def inputs():
    batch, heads, groups, length, half = 2, 8, 2, 32, 32
    angle = torch.outer(torch.arange(length), 10000 ** -(torch.arange(half) / half))
    angle = torch.cat((angle, angle), dim=-1)
    q = torch.randn(batch, heads, length, 2 * half)
    k = torch.randn(batch, groups, length, 2 * half)
    return q, k, angle.cos(), angle.sin()
