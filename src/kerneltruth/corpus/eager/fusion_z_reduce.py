"""Fusions that reduce, in plain PyTorch."""

import torch
import torch.nn.functional as F


def fused_repeat_interleave_log_softmax(
    input, repeats, dim=None, *, output_size=None, dtype=None, out=None
):
    repeated = torch.repeat_interleave(input, repeats, dim=dim, output_size=output_size)
    result = F.log_softmax(repeated, dim=0 if dim is None else dim, dtype=dtype)
    return result if out is None else out.copy_(result)


def fused_softmax_log(input, dim=-1, dtype=None):
    return F.softmax(torch.log(input), dim=dim, dtype=dtype)


def fused_sum_std(input, dim=None, keepdim=False, dtype=None, correction=1, out=None):
    sums = torch.sum(input, dim=dim, keepdim=keepdim, dtype=dtype)
    if sums.numel() <= correction:
        spread = torch.zeros((), dtype=sums.dtype, device=sums.device)
    else:
        spread = torch.std(sums, correction=correction)
    return spread if out is None else out.copy_(spread)


def fused_pairwise_distance_normalize(
    x1, x2, p_norm=2.0, eps_norm=1e-12, eps_distance=1e-06, keepdim=False
):
    # 1e-12 is 0 in half precision.
    distance = fused_pairwise_distance_normalize_unaided(
        x1.float(), x2.float(), p_norm, eps_norm, eps_distance, keepdim
    )
    return distance.to(x1.dtype)


def fused_pairwise_distance_normalize_unaided(
    x1, x2, p_norm=2.0, eps_norm=1e-12, eps_distance=1e-06, keepdim=False
):
    one = F.normalize(x1, p=p_norm, dim=-1, eps=eps_norm)
    other = F.normalize(x2, p=p_norm, dim=-1, eps=eps_norm)
    differences = one.unsqueeze(1) - other.unsqueeze(0)
    distance = torch.linalg.vector_norm(differences, p_norm, dim=-1).clamp_min(eps_distance)
    return distance.unsqueeze(-1) if keepdim else distance
