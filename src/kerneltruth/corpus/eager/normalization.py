"""PyTorch's own normalizations, as a candidate."""

import torch
import torch.nn.functional as F


def batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-05,
):
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def normalize_pairwise_distance(
    x1,
    x2,
    p_distance=2.0,
    eps_distance=1e-06,
    keepdim=False,
    p_norm=2,
    dim_norm=1,
    eps_norm=1e-12,
):
    distance = torch.norm(x1 - x2, p=p_distance, dim=-1, keepdim=keepdim) + eps_distance
    return F.normalize(distance, p=p_norm, dim=dim_norm, eps=eps_norm)


def normalized_cosine_similarity(x1, x2, dim=1, eps_similarity=1e-08, p_norm=2, eps_norm=1e-12):
    one = F.normalize(x1, p=p_norm, dim=dim, eps=eps_norm)
    other = F.normalize(x2, p=p_norm, dim=dim, eps=eps_norm)
    return F.cosine_similarity(one, other, dim=dim, eps=eps_similarity)


def spectral_norm_eig(A, *, out=None):
    # On a GPU, PyTorch 2.11 overwrites an input whose columns are contiguous.
    return spectral_norm_eig_unaided(A.clone(), out=out)


def spectral_norm_eig_unaided(A, *, out=None):
    return torch.amax(torch.linalg.eigvals(A).abs(), -1, out=out)


def symmetric_matrix_vector_norm(A, x, alpha, beta, p=2.0):
    y = alpha * torch.mv(A, x)
    return torch.norm(y + beta * y, p)
