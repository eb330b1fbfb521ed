"""PyTorch's own factorizations, as a candidate."""

import torch


def cholesky(A, upper=False, out=None):
    return torch.linalg.cholesky(A, upper=upper, out=out)


def ldl_factor(A, hermitian=False, out=None):
    LD, pivots = torch.linalg.ldl_factor(A, hermitian=hermitian, out=out)
    return LD, pivots


def lu(A, pivot=True, out=None):
    P, L, U = torch.linalg.lu(A, pivot=pivot, out=out)
    return P, L, U


def qr(A, mode="reduced", out=None):
    Q, R = torch.linalg.qr(A, mode=mode, out=out)
    return Q, R
