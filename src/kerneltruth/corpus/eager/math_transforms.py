"""Transforms along dims, and binomial counts, in plain PyTorch."""

import torch
import torch.nn.functional as F


def bitwise_and_binomial(input, other, total_count, probs=None, logits=None):
    torch.bitwise_and(input, other)
    counts = torch.distributions.Binomial(total_count=total_count, probs=probs, logits=logits)
    return counts.sample()


def fftn(input, s=None, dim=None, norm=None, out=None):
    return torch.fft.fftn(input, s=s, dim=dim, norm=norm, out=out)


def ifftshift(input, dim=None):
    return torch.fft.ifftshift(input, dim=dim)


def softmax(input, dim, dtype=None):
    return F.softmax(input, dim=dim, dtype=dtype)
