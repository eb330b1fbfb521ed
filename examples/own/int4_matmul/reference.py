import torch

GROUP = 32


def int4_matmul(x, packed, scales, zeros):
    """Multiply by a matrix of 4-bit weights, two in a byte, with a scale for each group of 32."""
    low, high = packed & 15, packed >> 4
    weights = torch.stack((low, high), dim=-1).flatten(1).to(x.dtype)
    scales = scales.repeat_interleave(GROUP, dim=1)
    zeros = zeros.repeat_interleave(GROUP, dim=1)
    return x @ ((weights - zeros) * scales).T


def inputs():
    rows, groups, columns = 16, 4, 48
    x = torch.randn(rows, groups * GROUP, dtype=torch.float16)
    packed = torch.randint(0, 256, (columns, groups * GROUP // 2), dtype=torch.uint8)
    scales = 0.01 + 0.02 * torch.rand(columns, groups, dtype=torch.float16)
    zeros = torch.randint(0, 16, (columns, groups)).to(torch.float16)
    return x, packed, scales, zeros
