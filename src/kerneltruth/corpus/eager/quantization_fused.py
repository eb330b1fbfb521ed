"""Quantized attention and layer normalization in plain PyTorch, with int8 codes."""

import math

import torch
import torch.nn.functional as F


def _codes(x, dim, top):
    scale = x.abs().amax(dim, keepdim=True).clamp_min(1e-12) / top
    return torch.round(x / scale).clamp(-top - 1, top), scale


def _product(x, x_scale, y, y_scale):
    # Codes are small integers, whose products float64 sums exactly on every device.
    return (x.double() @ y.double()).to(x_scale.dtype) * x_scale * y_scale


def attention_w8a8(query, key, value):
    q, q_scale = _codes(query, -1, 127)
    k, k_scale = _codes(key, -1, 127)
    v, v_scale = _codes(value, -1, 127)
    scores = _product(q, q_scale, k.transpose(-2, -1), k_scale.transpose(-2, -1))
    weights = torch.softmax(scores / math.sqrt(query.shape[-1]), -1)
    return (weights.double() @ (v * v_scale).double()).to(query.dtype)


def layernorm_w8a8(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    out = F.layer_norm(input, normalized_shape, weight, bias, eps)
    codes, scale = _codes(out, tuple(range(-len(normalized_shape), 0)), 127)
    return codes * scale
