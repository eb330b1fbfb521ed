"""Functions of two tensors in plain PyTorch."""

import torch


def add(input, other, alpha=1, out=None):
    return torch.add(input, other, alpha=alpha, out=out)


def sub(input, other, *, alpha=1, out=None):
    return torch.sub(input, other, alpha=alpha, out=out)


def mul(input, other, out=None):
    return torch.mul(input, other, out=out)


def div(input, other, rounding_mode=None, out=None):
    return torch.div(input, other, rounding_mode=rounding_mode, out=out)


def pow(input_tensor, exponent, out=None):
    return torch.pow(input_tensor, exponent, out=out)


def bitwise_and(input, other, out=None):
    return torch.bitwise_and(input, other, out=out)


def signbit_bitwise_and(input, other):
    return torch.signbit(input), torch.bitwise_and(input.to(torch.int8), other)


def zeta(input, other, out=None):
    result = torch.special.zeta(input.float(), other.float()).to(input.dtype)
    return result if out is None else out.copy_(result)
