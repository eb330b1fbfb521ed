"""Functions of one argument in plain PyTorch."""

import torch


def abs(input_tensor, out=None):
    return torch.abs(input_tensor, out=out)


def asin(input_tensor, *, out=None):
    return torch.asin(input_tensor, out=out)


def cos(input_tensor, *, out=None):
    return torch.cos(input_tensor, out=out)


def erf(input_tensor, *, out=None):
    return torch.erf(input_tensor, out=out)


def erfc_sqrt(input):
    return torch.erfc(input), torch.sqrt(input)


def exp_sqrt(input, out=None):
    return torch.sqrt(torch.exp(input), out=out)


def floor(input, out=None):
    return torch.floor(input, out=out)


def log(input, out=None):
    return torch.log(input, out=out)


def log1p(input, out=None):
    return torch.log1p(input, out=out)


def logit(input, eps=None, out=None):
    return torch.logit(input, eps=eps, out=out)


def rad2deg_sqrt(input):
    return torch.rad2deg(input), torch.sqrt(input)


def reciprocal(input, out=None):
    return torch.reciprocal(input, out=out)


def rsqrt(input, out=None):
    return torch.rsqrt(input, out=out)


def signbit(input, out=None):
    return torch.signbit(input, out=out)


def sqrt_exp(input, out=None):
    return torch.exp(torch.sqrt(input), out=out)


def sqrt_tanh(input, out=None):
    return torch.tanh(torch.sqrt(input), out=out)


def trunc(input, out=None):
    return torch.trunc(input, out=out)
