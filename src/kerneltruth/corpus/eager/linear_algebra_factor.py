"""PyTorch's own factorizations, as a candidate."""

import torch


def lu_of(A, pivot):
    if pivot or A.is_cuda:
        return torch.linalg.lu(A, pivot=pivot)
    # PyTorch eliminates without pivoting on a GPU only.
    size = min(A.shape[-2:])
    L, U = torch.zeros_like(A[..., :size]), A.clone()
    for k in range(size):
        L[..., k:, k] = U[..., k:, k] / U[..., k : k + 1, k]
        # A complex number over itself need not be 1.
        L[..., k, k] = 1
        U[..., k + 1 :, :] -= L[..., k + 1 :, k : k + 1] * U[..., k : k + 1, :]
    return A.new_empty(0), L, U[..., :size, :].triu()


def cholesky(A, upper=False, out=None):
    return torch.linalg.cholesky(A, upper=upper, out=out)


def ldl_factor(A, hermitian=False, out=None):
    LD, pivots = torch.linalg.ldl_factor(A, hermitian=hermitian, out=out)
    return LD, pivots


def lu(A, pivot=True, out=None):
    P, L, U = lu_of(A, pivot)
    return P, L, U


def qr(A, mode="reduced", out=None):
    Q, R = torch.linalg.qr(A, mode=mode, out=out)
    return Q, R
