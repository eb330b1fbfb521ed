"""PyTorch's own determinants, as a candidate."""

import torch


def det(A):
    return torch.linalg.det(A)


def determinant_lu(A, *, pivot=True, out=None):
    P, _, U = torch.linalg.lu(A, pivot=pivot)
    product = U.diagonal(dim1=-2, dim2=-1).prod(-1)
    result = product * torch.linalg.det(P) if pivot else product
    return result if out is None else out.copy_(result)


def determinant_via_qr(A, *, mode="reduced", out=None):
    Q, R = torch.linalg.qr(A, mode=mode)
    result = torch.linalg.det(Q) * R.diagonal(dim1=-2, dim2=-1).prod(-1)
    return result if out is None else out.copy_(result)
