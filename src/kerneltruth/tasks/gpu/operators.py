"""Operators as cuDNN and PyTorch's own GPU kernels compute them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.gpu.errors import Errors, widened
from kerneltruth.tasks.gpu.scans import SCANS

aten = torch.ops.aten


def _convolution(  # noqa: PLR0913 - as many as the operator has
    gpu: Errors,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Pad the image with zeros; add the bias to the rounded sums."""
    del gpu
    image, kernel = widened(x), widened(weight)
    dims = len(stride)
    if transposed:
        reach = [d * (k - 1) for d, k in zip(dilation, kernel.shape[2:], strict=True)]
        ends = [(r - p, r - p + o) for r, p, o in zip(reach, padding, output_padding, strict=True)]
        image, kernel = _spread(image, stride), _turned(kernel, groups)
        stride = [1] * dims
    else:
        ends = [(p, p) for p in padding]
    flat = [n for pair in reversed(ends) for n in pair]
    sums: Tensor = aten.convolution.default(
        F.pad(image, flat), kernel, None, stride, [0] * dims, dilation, False, [0] * dims, groups
    ).to(x.dtype)
    return sums if bias is None else sums + bias.reshape(-1, *(1 for _ in stride))


def _spread(image: Tensor, stride: Sequence[int]) -> Tensor:
    """Return the image with zeros between its elements."""
    sizes = [(n - 1) * s + 1 for n, s in zip(image.shape[2:], stride, strict=True)]
    wider = image.new_zeros((*image.shape[:2], *sizes))
    places: tuple[Any, ...] = (..., *(slice(None, None, s) for s in stride))
    wider[places] = image
    return wider


def _turned(kernel: Tensor, groups: int) -> Tensor:
    """Return the weight of the plain convolution equal to a transposed one."""
    inputs, outputs = kernel.shape[:2]
    parts = kernel.reshape(groups, inputs // groups, outputs, *kernel.shape[2:]).transpose(1, 2)
    whole = parts.reshape(groups * outputs, inputs // groups, *kernel.shape[2:])
    return whole.flip(tuple(range(2, whole.ndim)))


def _group_norm(  # noqa: PLR0913 - as many as the operator has
    gpu: Errors,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    images: int,
    channels: int,
    size: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Keep mean and 1 / deviation in the dtype of the input."""
    wide = widened(x).reshape(images, groups, -1)
    mean = gpu.mean_off(wide.mean(-1), wide.shape[-1]).to(x.dtype)
    rstd = (1 / torch.sqrt(wide.var(-1, correction=0) + eps)).to(x.dtype)
    each = rstd.to(wide.dtype).repeat_interleave(channels // groups, 1)
    scale = each if weight is None else each * weight.to(wide.dtype)
    shift = -scale * mean.to(wide.dtype).repeat_interleave(channels // groups, 1)
    shift = shift if bias is None else shift + bias.to(wide.dtype)
    planes = wide.reshape(images, channels, size)
    out = planes * scale.unsqueeze(-1) + shift.unsqueeze(-1)
    return out.reshape(x.shape).to(x.dtype), mean, rstd


def _batch_norm(  # noqa: PLR0913 - as many as the operator has
    gpu: Errors,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    given = (x, weight, bias, running_mean, running_var)
    wide, factor, summand, mean, var = (None if t is None else widened(t) for t in given)
    assert wide is not None
    out, seen, rstd = aten.native_batch_norm.default(
        wide, factor, summand, mean, var, training, momentum, eps
    )
    for kept, now in ((running_mean, mean), (running_var, var)):
        if kept is not None and now is not None and now is not kept:
            kept.copy_(now)
    if training:
        moved = (seen - gpu.mean_off(seen, x.numel() // x.shape[1])) * rstd
        moved = moved if factor is None else moved * factor
        out = out + moved.reshape(-1, *(1 for _ in x.shape[2:]))
    return out.to(x.dtype), seen, rstd


def _layer_norm(
    gpu: Errors,
    x: Tensor,
    shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    wide, factor, summand = (None if t is None else widened(t) for t in (x, weight, bias))
    assert wide is not None
    out, mean, rstd = aten.native_layer_norm.default(wide, shape, factor, summand, eps)
    moved = (mean - gpu.mean_off(mean, math.prod(shape))) * rstd
    out = out + (moved if factor is None else moved * factor)
    return out.to(x.dtype), mean, rstd


def rms_norm(
    gpu: Errors,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Compute the mean square as variance plus squared mean."""
    del gpu
    x = widened(input)
    dims = tuple(range(-len(normalized_shape), 0))
    least = torch.finfo(input.dtype).eps if eps is None else eps
    square = x.var(dims, correction=0, keepdim=True) + x.mean(dims, True).square()
    out = x / torch.sqrt(square + least)
    return (out if weight is None else out * widened(weight)).to(input.dtype)


def _nll_loss(
    gpu: Errors,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
) -> tuple[Tensor, Tensor]:
    del gpu
    factor = None if weight is None else widened(weight)
    out, total = aten.nll_loss_forward.default(widened(x), target, factor, reduction, ignore_index)
    if x.ndim == 1 and reduction == 1 and int(target) == ignore_index:
        out = torch.zeros_like(out)
    return out.to(x.dtype), total.to(x.dtype)


LIBRARY: Mapping[Any, Callable[..., Any]] = {
    aten.convolution.default: _convolution,
    aten.native_group_norm.default: _group_norm,
    aten.native_batch_norm.default: _batch_norm,
    aten.native_layer_norm.default: _layer_norm,
    aten.nll_loss_forward.default: _nll_loss,
    **SCANS,
}
