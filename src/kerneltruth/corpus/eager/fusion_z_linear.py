"""Linear layers and what follows them in plain PyTorch."""

import torch
import torch.nn.functional as F


def fused_layer_norm_relu_linear(
    input, weight, bias=None, normalized_shape=None, eps=1e-05, elementwise_affine=True
):
    active = F.relu(F.linear(input, weight, bias))
    return F.layer_norm(active, normalized_shape, eps=eps)


def fused_log_softmax_linear(input, weight, bias=None, dim=-1, dtype=None):
    return F.log_softmax(F.linear(input, weight, bias), dim=dim, dtype=dtype)


def fused_softplus_linear(input, weight, bias=None, beta=1, threshold=20):
    return F.softplus(F.linear(input, weight, bias), beta=beta, threshold=threshold)


def fused_tanh_linear(input, weight, bias=None):
    return torch.tanh(F.linear(input, weight, bias))


def fused_mv_sigmoid_sub(input, vec, other, alpha=1, *, out=None):
    return torch.sub(torch.sigmoid(torch.mv(input, vec)), other, alpha=alpha, out=out)
