"""Resampling of images: by a grid of positions, by an affine map, to another size."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.rounding import held_by
from kerneltruth.tasks.sampling import sample as sample_at
from kerneltruth.tasks.spec import Dim, Promises, Sizes, Task, nonempty, task


def _grid_sample(
    input: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool
) -> Tensor:
    return sample_at(input, grid, mode, padding_mode, align_corners)


def _unsnapped(order: int) -> Any:
    """Positions rounded another way, and any value where a position is no number."""

    def sampled(input: Tensor, grid: Tensor, **options: Any) -> Tensor:
        return sample_at(input, grid, **options, order=order, snap=False, lost_gives=0.0)

    return sampled


def _in_own_dtype(input: Tensor, grid: Tensor, **options: Any) -> Tensor:
    """All in the case's dtype: which pixels a position lies between hangs on its rounding."""
    dtype = held_by(input)
    out: Tensor = _unsnapped(0)(input.to(dtype), grid.to(dtype), **options)
    return out.to(input.dtype)


def _with_affine(
    input: Tensor,
    theta: Tensor,
    size: tuple[int, ...],
    mode: str,
    padding_mode: str,
    align_corners: bool,
) -> Tensor:
    grid = F.affine_grid(theta, list(size), align_corners)
    return sample_at(input, grid, mode, padding_mode, align_corners)


def _with_affine_in_steps(order: int, *, narrow_map: bool, narrow_sample: bool) -> Any:
    """The grid is a tensor of its own in the case's dtype; either step may compute in float32."""

    def sampled(
        input: Tensor, theta: Tensor, size: tuple[int, ...], align_corners: bool, **options: Any
    ) -> Tensor:
        dtype = held_by(input)
        # Torch has no half-precision map to a single row or column.
        narrow = narrow_map and min(size[2:]) > 1
        map_ = theta.to(dtype) if narrow else theta
        grid = F.affine_grid(map_, list(size), align_corners).to(dtype)
        kept = dtype if narrow_sample else input.dtype
        sample = _unsnapped(order)
        out: Tensor = sample(input.to(kept), grid.to(kept), align_corners=align_corners, **options)
        return out.to(input.dtype)

    return sampled


def _with_affine_at_once(order: int) -> Any:
    def sampled(
        input: Tensor, theta: Tensor, size: tuple[int, ...], align_corners: bool, **options: Any
    ) -> Tensor:
        grid = F.affine_grid(theta, list(size), align_corners)
        out: Tensor = _unsnapped(order)(input, grid, align_corners=align_corners, **options)
        return out

    return sampled


def _interpolate(
    input: Tensor, size: Any, scale_factor: Any, mode: str, align_corners: bool | None
) -> Tensor:
    resized: Tensor = F.interpolate(input, size, scale_factor, mode, align_corners)
    return resized


_MODES = {"mode": ("nearest", "bicubic"), "padding_mode": ("border", "reflection")}
_CORNERS = {"align_corners": (True,)}
_IMAGE = {
    "N": Dim(symbol="N", role="batch"),
    **nonempty(C="channel", H="spatial", W="spatial"),
    "P": Dim(symbol="P", role="spatial", low=1, high=4096),
    "Q": Dim(symbol="Q", role="spatial", low=1, high=4096),
}
_BENCHMARK = {"N": 2, "C": 4, "H": 16, "W": 16, "P": 16, "Q": 16}
_PERF = (
    {"N": 8, "C": 32, "H": 64, "W": 64, "P": 64, "Q": 64},
    {"N": 16, "C": 64, "H": 128, "W": 128, "P": 128, "Q": 128},
    {"N": 32, "C": 64, "H": 256, "W": 256, "P": 256, "Q": 256},
)
_SAMPLING = """A position (x, y) counts from -1 to 1: with align_corners these are
    the centres of the first and last pixel, x = -1 + 2 * i / (W - 1) for column i, and without
    it the outer edges of the image, x = -1 + (2 * i + 1) / W. A position lies between pixels.
    mode "bilinear" weighs the four nearest; "nearest" takes the nearest one, the even one in the
    middle between two; "bicubic" weighs the 4 by 4 nearest by the cubic convolution kernel with
    a = -0.75. padding_mode says what a position outside of the image takes: "zeros" counts pixels
    outside as 0, "border" moves the position to the nearest one inside, "reflection" reflects it
    at the centres of the outermost pixels (with align_corners) or at the outer edges (without),
    as often as needed, and then clips it; for "bicubic" the 16 pixels are padded in that way and
    not the position. """


def _interpolate_input(N: int, C: int, H: int, W: int, mode: str) -> Sizes:
    if mode == "linear":
        return (N, C, W)
    if mode == "trilinear":
        return (N, C, 3, H, W)
    return (N, C, H, W)


def _resized(P: int, Q: int, mode: str, _factor: float | None) -> Sizes | None:
    if _factor:
        return None
    return {"linear": (Q,), "trilinear": (2, P, Q)}.get(mode, (P, Q))


def _fewest(H: int, W: int, mode: str, _factor: float | None) -> float:
    """Return how many pixels the smallest dim of the result has, before it is rounded down."""
    return (_factor or 1) * min(H, W, 3 if mode == "trilinear" else H)


_task = partial(task, category="SpatialOps", dims=_IMAGE, benchmark=_BENCHMARK, perf=_PERF)

TASKS: tuple[Task, ...] = (
    _task(
        "grid_sample(input[N, C, H, W], grid[N, P, Q, 2], mode='bilinear', padding_mode='zeros', "
        "align_corners=False)",
        attributes={**_MODES, **_CORNERS},
        extended={"padding_mode": ("reflection",)},
        values=(-1.5, 1.5),
        reference=_grid_sample,
        admissible=(_unsnapped(0), _unsnapped(1), _unsnapped(2), _in_own_dtype),
        description=_SAMPLING
        + """Output pixel [n, c, p, q], in the dtype of the input, is channel c of image n at the
            position grid[n, p, q], whose x comes first; it goes along the last dim of the image.
            What a position that is not finite gives is left open.""",
        flops="16*N*C*P*Q",
        promises=Promises(
            not_tried={"volumes, of five dims": "the input is an image in every case"}
        ),
    ),
    _task(
        "grid_sample_with_affine(input[N, C, H, W], theta[N, 2, 3], size:=(N, C, P, Q), "
        "mode='bilinear', padding_mode='zeros', align_corners=False)",
        attributes={**_MODES, **_CORNERS},
        values=(-1.5, 1.5),
        reference=_with_affine,
        admissible=(
            *(_with_affine_at_once(order) for order in range(3)),
            _with_affine_in_steps(0, narrow_map=False, narrow_sample=False),
            _with_affine_in_steps(0, narrow_map=False, narrow_sample=True),
            _with_affine_in_steps(0, narrow_map=True, narrow_sample=False),
            _with_affine_in_steps(0, narrow_map=True, narrow_sample=True),
        ),
        description=_SAMPLING
        + """The output has the shape `size` = (N, C, P, Q) and the dtype of the input. With (u, v)
            the position of output pixel (p, q), u of its column q among Q and v of its row p among
            P (0 where there is only one and align_corners), output [n, c, p, q] is channel c of
            image n at x = theta[n, 0, 0] * u + theta[n, 0, 1] * v + theta[n, 0, 2] and
            y = theta[n, 1, 0] * u + theta[n, 1, 1] * v + theta[n, 1, 2]. Positions may be rounded
            to the dtype of theta. What a position that is not finite gives is left open.""",
        flops="16*N*C*P*Q",
    ),
    _task(
        "interpolate(input[*shape], size:=resized, scale_factor:=_factor, mode='nearest', "
        "align_corners=None, _factor=None)",
        where={"shape": _interpolate_input, "resized": _resized, "fewest": _fewest},
        attributes={
            "mode": ("bilinear", "bicubic", "nearest-exact", "area", "linear", "trilinear"),
            "align_corners": (True, False),
            "_factor": (2.0, 0.5, 1.7),
        },
        extended={
            "mode": ("bicubic", "nearest-exact", "area", "linear", "trilinear"),
            "_factor": (1.7,),
        },
        constraints=(
            "align_corners is None or mode in ('bilinear', 'bicubic', 'linear', 'trilinear')",
            "fewest >= 1",
        ),
        reference=_interpolate,
        description="""input resized, in its dtype, as in torch.nn.functional.interpolate: input is
            [N, C, H, W], or [N, C, W] for mode "linear" and [N, C, D, H, W] for "trilinear". One
            of size and scale_factor is None. size gives the output's spatial sizes; scale_factor
            multiplies each, rounded down, and then positions are scaled by 1 / scale_factor and
            not by the ratio of the sizes. With r the input's size over the output's (or
            1 / scale_factor), output i lies at r * (i + 0.5) - 0.5, or, with align_corners=True,
            at i * (n - 1) / (m - 1) for n input and m output pixels (0 where m is 1). "linear",
            "bilinear" and "trilinear" weigh the two neighbours in each dim, positions below 0
            count as 0 and those beyond the last pixel take that one; "bicubic" weighs four
            neighbours by cubic convolution with a = -0.75, and pixels outside repeat the outermost
            one. "nearest" takes pixel floor(i * r), "nearest-exact" floor((i + 0.5) * r), "area"
            the mean of windows as in adaptive average pooling; these three have no
            align_corners, which is None then. None means False.""",
        flops="16*N*C*P*Q",
    ),
)
