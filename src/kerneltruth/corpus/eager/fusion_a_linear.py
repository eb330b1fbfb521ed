"""A linear layer and its activation, as PyTorch computes them."""

import torch
import torch.nn.functional as F


def fused_dropout_sigmoid_linear(input, weight, bias=None, p=0.5, training=True, inplace=False):
    activated = torch.sigmoid(F.linear(input, weight, bias))
    return F.dropout(activated, p=p, training=training, inplace=inplace)


def fused_elu_linear(input, weight, bias=None, alpha=1.0, inplace=False):
    return F.elu(F.linear(input, weight, bias), alpha=alpha, inplace=inplace)
