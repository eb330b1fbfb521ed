"""The matrix products of the suite in plain PyTorch: one function per task."""

import torch


def addmm(input, mat1, mat2, beta=1, alpha=1, out=None):
    return torch.addmm(input, mat1, mat2, beta=beta, alpha=alpha, out=out)


def matmul(tensor1, tensor2, *, out=None):
    return torch.matmul(tensor1, tensor2, out=out)


def matmul_bf16(input, other):
    return torch.matmul(input, other)


def matmul_fp16(input, other):
    return torch.matmul(input, other)


def matrix_multiply_and_row_dot(A, B, alpha, beta, C):
    result = alpha * torch.mm(A, B) + beta * C
    return torch.dot(result[0], result[1])


def matrix_multiply_symmetric(A, B, C, alpha, beta):
    first = alpha * torch.mm(A, B) + beta * C
    return alpha * torch.mm(first, first.T) + beta * first


def matrix_vector_dot(A, x, y, alpha, beta):
    y.copy_(alpha * torch.mv(A, x) + beta * y)
    return torch.dot(y, x)


def symmetric_mm_and_abs_sum(A, C, alpha, beta):
    result = alpha * torch.mm(A, A.T) + beta * C
    return torch.sum(torch.abs(result))


def tensordot_rsqrt(a, b, dims):
    return torch.rsqrt(torch.tensordot(a, b, dims=dims))


def tril_mm_and_scale(A, B, alpha, beta):
    return beta * (alpha * torch.mm(torch.tril(A), B))
