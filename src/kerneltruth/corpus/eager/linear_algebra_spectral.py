"""PyTorch's own eigenvalues and singular values, as a candidate."""

import torch


def eig(A):
    # PyTorch 2.11 may overwrite its input here on a GPU.
    return eig_unaided(A.clone())


def eig_unaided(A):
    values, vectors = torch.linalg.eig(A)
    return values, vectors


def low_rank_svd_approximation(A, k, *, full_matrices=True, out=None):
    U, S, Vh = torch.linalg.svd(A, full_matrices=full_matrices)
    return torch.matmul(U[..., :k] * S[..., None, :k], Vh[..., :k, :], out=out)


def matrix_power_eig(A, k, *, out=None):
    values, vectors = torch.linalg.eigh(A)
    return torch.matmul(vectors * torch.pow(values, k).unsqueeze(-2), vectors.mH, out=out)


def pseudoinverse_svd(A, full_matrices=True, rcond=1e-15, out=None):
    U, S, Vh = torch.linalg.svd(A, full_matrices=full_matrices)
    inner = S.shape[-1]
    kept = rcond * S.amax(-1, keepdim=True) < S
    inverse = torch.where(kept, 1 / S, torch.zeros_like(S))
    V = Vh[..., :inner, :].mH
    return torch.matmul(V * inverse.unsqueeze(-2), U[..., :inner].mH, out=out)


def svd(A, full_matrices=True):
    U, S, Vh = torch.linalg.svd(A, full_matrices=full_matrices)
    return U, S, Vh
