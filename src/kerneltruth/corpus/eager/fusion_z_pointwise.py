"""Element-by-element fusions in plain PyTorch."""

import torch
import torch.nn.functional as F


def fused_log_tanh(input, out=None):
    return torch.tanh(torch.log(input), out=out)


def fused_masked_select_add_gelu(input, mask, other, *, alpha=1, approximate="none", out=None):
    selected = torch.masked_select(input, mask)
    result = F.gelu(torch.add(selected, other, alpha=alpha), approximate=approximate)
    return result if out is None else out.copy_(result)


def fused_mul_sub(input, other_mul, other_sub, alpha=1, out=None):
    return torch.sub(torch.mul(input, other_mul), other_sub, alpha=alpha, out=out)


def fused_relu_sqrt(input, inplace=False, out=None):
    if inplace:
        return input.relu_().sqrt_()
    return torch.sqrt(torch.relu(input), out=out)


def fused_sub_gelu(input, other, alpha=1, approximate="none", out=None):
    result = F.gelu(torch.sub(input, other, alpha=alpha), approximate=approximate)
    return result if out is None else out.copy_(result)


def fused_tile_exp(input, dims, *, out=None):
    return torch.exp(torch.tile(input, dims), out=out)
