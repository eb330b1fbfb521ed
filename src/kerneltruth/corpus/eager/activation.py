"""PyTorch's own activations, as a candidate."""

import torch
import torch.nn.functional as F


def relu(input, inplace=False):
    return F.relu(input, inplace=inplace)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    return F.leaky_relu(input, negative_slope=negative_slope, inplace=inplace)


def selu(input, inplace=False):
    return F.selu(input, inplace=inplace)


def sigmoid(input, out=None):
    return torch.sigmoid(input, out=out)


def tanh(input_tensor, out_tensor=None):
    return torch.tanh(input_tensor, out=out_tensor)


def gelu(input, approximate="none"):
    return F.gelu(input, approximate=approximate)


def gelu_bf16(input, approximate="none"):
    return F.gelu(input, approximate=approximate)


def gelu_fp16(input, approximate="none"):
    return F.gelu(input, approximate=approximate)


def gelu_int8(input, approximate="none"):
    return F.gelu(input.float(), approximate=approximate).to(torch.int8)


def combined_activation(input, weight1, weight2, bias, *, out=None):
    result = torch.tanh(torch.sigmoid(torch.matmul(input, weight1))) * weight2 + bias
    return result if out is None else out.copy_(result)
