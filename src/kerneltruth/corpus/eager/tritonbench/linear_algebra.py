"""PyTorch's own factorizations at work, as a candidate."""

import torch


def lu_of(A, pivot):
    if pivot or A.is_cuda:
        return torch.linalg.lu(A, pivot=pivot)
    # PyTorch eliminates without pivoting on a GPU only.
    size = min(A.shape[-2:])
    L, U = torch.zeros_like(A[..., :size]), A.clone()
    for k in range(size):
        L[..., k:, k] = U[..., k:, k] / U[..., k : k + 1, k]
        U[..., k + 1 :, :] -= L[..., k + 1 :, k : k + 1] * U[..., k : k + 1, :]
    return A.new_empty(0), L, U[..., :size, :].triu()


def least_squares_qr(A, b, *, mode="reduced", out=None):
    Q, R = torch.linalg.qr(A, mode=mode)
    columns = A.shape[-1]
    vector = b.ndim == A.ndim - 1
    due = Q[..., :columns].mT @ (b.unsqueeze(-1) if vector else b)
    x = torch.linalg.solve_triangular(R[..., :columns, :], due, upper=True)
    x = x.squeeze(-1) if vector else x
    return x if out is None else out.copy_(x)


def solve_multiple_lu(A, Bs, *, pivot=True, out=None):
    P, L, U = lu_of(A, pivot)
    due = P.mT @ Bs if pivot else Bs
    Y = torch.linalg.solve_triangular(L, due, upper=False, unitriangular=True)
    return torch.linalg.solve_triangular(U, Y, upper=True, out=out)
