"""The resampling operators of the suite in plain PyTorch: one function per task."""

import torch.nn.functional as F


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    return F.grid_sample(input, grid, mode, padding_mode, align_corners)


def grid_sample_with_affine(
    input, theta, size, mode="bilinear", padding_mode="zeros", align_corners=False
):
    # PyTorch has no half-precision map to a single row or column, neither on a CPU nor on a GPU.
    lacks_half = min(size[2:]) == 1
    grid = F.affine_grid(theta.float() if lacks_half else theta, list(size), align_corners)
    grid = grid.to(input.dtype)
    return F.grid_sample(input, grid, mode, padding_mode, align_corners)


def grid_sample_with_affine_unaided(
    input, theta, size, mode="bilinear", padding_mode="zeros", align_corners=False
):
    grid = F.affine_grid(theta, list(size), align_corners)
    return F.grid_sample(input, grid, mode, padding_mode, align_corners)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    return F.interpolate(input, size, scale_factor, mode, align_corners)
