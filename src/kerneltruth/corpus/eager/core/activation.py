"""PyTorch's own activations, as a candidate."""

import torch
import torch.nn.functional as F


def relu(input):
    return F.relu(input)


def leaky_relu(input, negative_slope=0.01):
    return F.leaky_relu(input, negative_slope)


def sigmoid(input):
    return torch.sigmoid(input)


def tanh(input_tensor):
    return torch.tanh(input_tensor)


def silu(input):
    return F.silu(input)


def gelu(input, approximate="none"):
    return F.gelu(input, approximate=approximate)


def elu(input, alpha=1.0):
    return F.elu(input, alpha)


def softplus(input, beta=1.0, threshold=20.0):
    return F.softplus(input, beta, threshold)


def softmax(input, dim=-1):
    return F.softmax(input, dim)


def log_softmax(input, dim=-1):
    return F.log_softmax(input, dim)
