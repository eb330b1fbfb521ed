"""PyTorch's own solvers, as a candidate."""

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


def cholesky_solve(B, L, upper=False, out=None):
    return torch.cholesky_solve(B, L, upper=upper, out=out)


def invert_matrix_lu(A, *, pivot=True, out=None):
    P, L, U = lu_of(A, pivot)
    one = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    Y = torch.linalg.solve_triangular(L, P.mT if pivot else one, upper=False, unitriangular=True)
    return torch.linalg.solve_triangular(U, Y, upper=True, out=out)


def solve(A, B, *, out=None):
    return torch.linalg.solve(A, B, out=out)


def solve_and_add_scaled_vector(A, b, y, alpha):
    x = torch.linalg.solve_triangular(A, b, upper=True)
    x += alpha * y
    return x


def solve_symmetric_ldl(A, b, hermitian=False, out=None):
    LD, pivots = torch.linalg.ldl_factor(A, hermitian=hermitian)
    vector = b.ndim == A.ndim - 1
    x = torch.linalg.ldl_solve(LD, pivots, b.unsqueeze(-1) if vector else b, hermitian=hermitian)
    x = x.squeeze(-1) if vector else x
    return x if out is None else out.copy_(x)
