"""Interpolation of images.

Source positions are computed in integers, so that the reference does not hang on how a position
is rounded: the position of output i is a fraction whose floor and remainder are exact.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from kerneltruth.tasks.arguments import Scalar
from kerneltruth.tasks.spec import Dim, Role, Task, nonempty, task

_IMAGE: dict[str, Role | Dim] = {
    "C": "channel",
    **nonempty(H="spatial", W="spatial"),
}
# To twice the height and width: at the default size, large images would be thinned out.
_LARGE: tuple[dict[str, Scalar], ...] = (
    {"C": 64, "H": 64, "W": 64, "size": (128, 128)},
    {"C": 256, "H": 128, "W": 128, "size": (256, 256)},
    {"C": 1024, "H": 256, "W": 256, "size": (512, 512)},
)

_Bilinear = Callable[[torch.Tensor, tuple[int, int], bool], torch.Tensor]


def _nearest(input: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    _, height, width = input.shape
    rows = torch.arange(size[0], device=input.device) * height // size[0]
    columns = torch.arange(size[1], device=input.device) * width // size[1]
    return input[:, rows][:, :, columns]


def _sources(n: int, size: int, align_corners: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Index of the left neighbour of each output, and the weight of the right one."""
    i = torch.arange(size)
    if align_corners:
        numerator, denominator = i * (n - 1), max(size - 1, 1)
    else:
        numerator, denominator = ((2 * i + 1) * n - size).clamp(min=0), 2 * size
    left = numerator // denominator
    return left, (numerator - left * denominator).double() / denominator


def _rounded_sources(n: int, size: int, align_corners: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """As `_sources`, from positions that are rounded to float32, as PyTorch computes them."""
    i = torch.arange(size, dtype=torch.float32)
    if align_corners:
        position = i * torch.tensor((n - 1) / max(size - 1, 1), dtype=torch.float32)
    else:
        scale = torch.tensor(n / size, dtype=torch.float32)
        position = (scale * (i + 0.5) - 0.5).clamp(min=0)
    left = position.long().clamp(max=n - 1)
    return left, position - left


def _bilinear_between(sources: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> _Bilinear:
    """The operator, with the neighbours of each output and their weights from `sources`."""

    def bilinear(input: torch.Tensor, size: tuple[int, int], align_corners: bool) -> torch.Tensor:
        out = input
        for dim, wanted in zip((1, 2), size, strict=True):
            n = out.shape[dim]
            left, weight = sources(n, wanted, align_corners)
            shape = (1, -1, 1) if dim == 1 else (1, 1, -1)
            weight = weight.to(out).reshape(shape)
            left = left.to(out.device)
            right = (left + 1).clamp(max=n - 1)
            out = (1 - weight) * out.index_select(dim, left) + weight * out.index_select(dim, right)
        return out

    return bilinear


TASKS: tuple[Task, ...] = (
    task(
        "interpolate_nearest(input[C, H, W], size=(32, 32))",
        category="SpatialOps",
        dims=_IMAGE,
        attributes={"size": ((5, 9), (2, 3))},
        reference=_nearest,
        description="""Resize to size by the nearest element: output (i, j) is input
            (floor(i * H / size[0]), floor(j * W / size[1])).""",
        flops="0",
        bytes="itemsize*C*(min(H, size[0])*min(W, size[1]) + size[0]*size[1])",
        benchmark={"C": 4, "H": 64, "W": 64},
        perf=_LARGE,
    ),
    task(
        "interpolate_bilinear(input[C, H, W], size=(16, 16), align_corners=False)",
        category="SpatialOps",
        dims=_IMAGE,
        attributes={"size": ((5, 9),), "align_corners": (True,)},
        reference=_bilinear_between(_sources),
        admissible=(_bilinear_between(_rounded_sources),),
        description="""Bilinear resize to size. With align_corners=False pixel centres are at half
            integers: output i lies at max((i + 0.5) * H / size[0] - 0.5, 0) of the input; with
            align_corners=True it lies at i * (H - 1) / (size[0] - 1), or 0 if size[0] is 1.
            Positions beyond the last row or column take the last one.""",
        flops="8*C*size[0]*size[1]",
        bytes="itemsize*C*(min(H, 2*size[0])*min(W, 2*size[1]) + size[0]*size[1])",
        benchmark={"C": 4, "H": 32, "W": 32},
        perf=_LARGE,
    ),
)
