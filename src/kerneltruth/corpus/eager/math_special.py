"""Special functions in plain PyTorch; where it has no half precision, through float32."""

import torch


def airy_ai(input, out=None):
    result = torch.special.airy_ai(input.float()).to(input.dtype)
    return result if out is None else out.copy_(result)


def bessel_j1(input, out=None):
    result = torch.special.bessel_j1(input.float()).to(input.dtype)
    return result if out is None else out.copy_(result)


def chebyshev_polynomial_t(input, n, out=None):
    result = torch.special.chebyshev_polynomial_t(input.float(), n).to(input.dtype)
    return result if out is None else out.copy_(result)


def digamma(input_tensor, *, out=None):
    return torch.special.digamma(input_tensor, out=out)


def gammaln(input, out=None):
    return torch.special.gammaln(input, out=out)


def i0(input_tensor, out=None):
    return torch.special.i0(input_tensor, out=out)


def polygamma(n, input, *, out=None):
    return torch.special.polygamma(n, input, out=out)
