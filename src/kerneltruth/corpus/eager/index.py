"""PyTorch's own indexing, as a candidate."""

import torch


def expand_where(input, target_sizes, cond, other):
    return torch.where(cond, input.expand(*target_sizes), other)


def index_fill_(dim, x, index, value):
    return x.index_fill_(dim, index, value)


def index_select(input, dim, index):
    return torch.index_select(input, dim, index)


def masked_select(input, mask):
    return torch.masked_select(input, mask)


def permute_copy(input, dims):
    return torch.permute_copy(input, dims)


def scatter(input, dim, index, src):
    return torch.scatter(input, dim, index, src)
