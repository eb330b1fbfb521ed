"""PyTorch's own arithmetic, scans and counts, as a candidate."""

import torch


def floor(input):
    return torch.floor(input)


def pow(input, exponent=2.0):
    return torch.pow(input, exponent)


def clamp(input, min=-1.0, max=1.0):
    return torch.clamp(input, min, max)


def rad2deg(input):
    return torch.rad2deg(input)


def logit(input, eps=None):
    return torch.logit(input, eps)


def lerp(input, end, weight=0.5):
    return torch.lerp(input, end, weight)


def addcmul(input, tensor1, tensor2, value=1.0):
    return torch.addcmul(input, tensor1, tensor2, value=value)


def gcd(input, other):
    return torch.gcd(input, other)


def cumsum(input):
    return torch.cumsum(input, -1)


def reverse_cumsum(input):
    return input.flip(-1).cumsum(-1).flip(-1)


def count_nonzero(input):
    return torch.count_nonzero(input, -1)


def amax(input):
    return torch.amax(input)


def masked_softmax(input, mask):
    weights = torch.softmax(input.masked_fill(~mask, float("-inf")), -1)
    return torch.where(mask.any(-1, keepdim=True), weights, 0.0)


def gram(input):
    return input @ input.T
