"""PyTorch's own factorizations at work, as a candidate."""

import torch


def least_squares_qr(A, b, *, mode="reduced", out=None):
    Q, R = torch.linalg.qr(A, mode=mode)
    columns = A.shape[-1]
    vector = b.ndim == A.ndim - 1
    due = Q[..., :columns].mT @ (b.unsqueeze(-1) if vector else b)
    x = torch.linalg.solve_triangular(R[..., :columns, :], due, upper=True)
    x = x.squeeze(-1) if vector else x
    return x if out is None else out.copy_(x)


def solve_multiple_lu(A, Bs, *, pivot=True, out=None):
    P, L, U = torch.linalg.lu(A, pivot=pivot)
    due = P.mT @ Bs if pivot else Bs
    Y = torch.linalg.solve_triangular(L, due, upper=False, unitriangular=True)
    return torch.linalg.solve_triangular(U, Y, upper=True, out=out)
