"""Quantized operators in plain PyTorch: scales from the largest magnitude, int8 or int4 codes."""

import torch
import torch.nn.functional as F


def _codes(x, dim, top):
    scale = x.abs().amax(dim, keepdim=True).clamp_min(1e-12) / top
    return torch.round(x / scale).clamp(-top - 1, top), scale


def _product(x, x_scale, y, y_scale):
    # Codes are small integers, whose products float64 sums exactly on every device.
    return (x.double() @ y.double()).to(x_scale.dtype) * x_scale * y_scale


def matmul_w8a8(input, weight):
    x, x_scale = _codes(input, -1, 127)
    w, w_scale = _codes(weight, 0, 127)
    return _product(x, x_scale, w, w_scale)


def bmm_w8a8(input, mat2):
    x, x_scale = _codes(input, -1, 127)
    y, y_scale = _codes(mat2, 1, 127)
    return _product(x, x_scale, y, y_scale)


def conv2d_w8a8(input, weight, bias=None, stride=1, padding=0):
    x, x_scale = _codes(input, (0, 1, 2, 3), 127)
    w, w_scale = _codes(weight, (1, 2, 3), 127)
    summed = F.conv2d(x.double(), w.double(), None, stride, padding).to(input.dtype)
    out = summed * x_scale * w_scale.reshape(1, -1, 1, 1)
    return out if bias is None else out + bias.reshape(1, -1, 1, 1)


def linear_w4a16(input, weight, bias=None):
    codes, scale = _codes(weight.float(), 1, 7)
    return F.linear(input.float(), codes * scale, None if bias is None else bias.float()).to(
        input.dtype
    )
