"""PyTorch's own determinants, as a candidate."""

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


def det(A, *, out=None):
    return torch.linalg.det(A, out=out)


def determinant_lu(A, *, pivot=True, out=None):
    P, _, U = lu_of(A, pivot)
    product = U.diagonal(dim1=-2, dim2=-1).prod(-1)
    result = product * torch.linalg.det(P) if pivot else product
    return result if out is None else out.copy_(result)


def determinant_via_qr(A, *, mode="reduced", out=None):
    Q, R = torch.linalg.qr(A, mode=mode)
    result = torch.linalg.det(Q) * R.diagonal(dim1=-2, dim2=-1).prod(-1)
    return result if out is None else out.copy_(result)
