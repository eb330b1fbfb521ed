"""Fusions of a two-dimensional convolution with what follows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.spec import (
    Benchmark,
    Dim,
    Output,
    Promises,
    Role,
    Scalar,
    Task,
    nonempty,
    task,
)
from kerneltruth.tasks.windows import Each, along, outputs

Pair = int | tuple[int, int]

_CONV = (
    "input[N, C, H, W], weight[O, C // groups, KH, KW], bias[O]?, stride=1, padding=0, dilation=1, "
    "groups=1"
)
_VARIED: dict[str, tuple[Scalar, ...]] = {
    "stride": (2, (1, 2)),
    "padding": (1, (2, 0)),
    "dilation": (2,),
    "groups": (2, 3),
}
# Where a prompt documents them: a pair of dilations, and padding by name.
_MORE: dict[str, tuple[Scalar, ...]] = {
    **_VARIED,
    "padding": (1, (2, 0), "same", "valid"),
    "dilation": (2, (1, 2)),
}
_PAIRS: dict[str, tuple[Scalar, ...]] = {"stride": ((1, 2),), "padding": ((2, 0),)}
_BENCHMARK = Benchmark(
    dims={"N": 1, "C": 4, "H": 17, "W": 17, "O": 8, "KH": 3, "KW": 3}, distribution="normal"
)
_PERF: tuple[Mapping[str, int], ...] = (
    {"N": 4, "C": 32, "H": 32, "W": 32, "O": 32, "KH": 3, "KW": 3},
    {"N": 16, "C": 64, "H": 56, "W": 56, "O": 64, "KH": 3, "KW": 3},
    {"N": 64, "C": 256, "H": 56, "W": 56, "O": 256, "KH": 3, "KW": 3},
)
# Half precision keeps the convolution before what follows: sums must stay within its range.
_MODERATE = (-4.0, 4.0)
_LAYER = """two-dimensional convolution (cross-correlation) of input[N, C, H, W] with
    weight[O, C / groups, KH, KW], plus bias[O] unless it is None: stride, zero padding on both
    sides and dilation are each an int for both dims or a pair (rows, columns); padding may be
    'valid' for 0 or 'same', which with stride 1 gives H x W outputs (dilation * (KH - 1) in all,
    the odd one at the end); with groups, output channel o sees the input channels of group
    o // (O / groups) only."""


def _dims(channels: int | None = None) -> dict[str, Role | Dim]:
    return {
        "N": Dim(symbol="N", role="batch", low=1),
        "C": Dim(symbol="C", role="contracted", low=1, high=channels),
        **nonempty(H="spatial", W="spatial", O="channel"),
        "KH": Dim(symbol="KH", role="contracted", low=1, high=5),
        "KW": Dim(symbol="KW", role="contracted", low=1, high=5),
    }


def _rows(H: int, KH: int, stride: Each, padding: Each | str, dilation: Each) -> int:
    return outputs(H, KH, 0, stride, padding, dilation)


def _columns(W: int, KW: int, stride: Each, padding: Each | str, dilation: Each) -> int:
    return outputs(W, KW, 1, stride, padding, dilation)


def _conv_rows(
    H: int, KH: int, conv_stride: Each, conv_padding: Each | str, conv_dilation: Each
) -> int:
    return outputs(H, KH, 0, conv_stride, conv_padding, conv_dilation)


def _conv_columns(
    W: int, KW: int, conv_stride: Each, conv_padding: Each | str, conv_dilation: Each
) -> int:
    return outputs(W, KW, 1, conv_stride, conv_padding, conv_dilation)


_SIZES: dict[str, Callable[..., int]] = {"rows": _rows, "columns": _columns}
_CONV_SIZES: dict[str, Callable[..., int]] = {"rows": _conv_rows, "columns": _conv_columns}


def _rules(prefix: str = "", out: str = "O") -> tuple[str, ...]:
    groups = f"{prefix}groups"
    return (
        f"C % {groups} == 0",
        f"({out}) % {groups} == 0",
        f"{prefix}padding != 'same' or {prefix}stride == 1",
        "rows >= 1",
        "columns >= 1",
    )


def _flops(prefix: str = "", out: str = "O") -> str:
    return f"2 * N * {out} * (C // {prefix}groups) * KH * KW * rows * columns"


def _padding_fits(axis: int) -> Callable[..., int]:
    """Return whether windows of pooling are padded by at most half of themselves."""
    return lambda pool_padding, pool_kernel_size: (
        2 * along(pool_padding, axis) <= along(pool_kernel_size, axis)
    )


def _window_fits(
    size: int, axis: int, pool_padding: Each, pool_dilation: Each, pool_kernel_size: Each
) -> bool:
    reach = along(pool_dilation, axis) * (along(pool_kernel_size, axis) - 1)
    return size + 2 * along(pool_padding, axis) > reach


_POOLED: dict[str, Callable[..., int]] = {
    "padding_of_rows_fits": _padding_fits(0),
    "rows_fit": lambda rows, pool_padding, pool_dilation, pool_kernel_size: _window_fits(
        rows, 0, pool_padding, pool_dilation, pool_kernel_size
    ),
    "padding_of_columns_fits": _padding_fits(1),
    "columns_fit": lambda columns, pool_padding, pool_dilation, pool_kernel_size: _window_fits(
        columns, 1, pool_padding, pool_dilation, pool_kernel_size
    ),
}


def _conv(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Pair,
    padding: Pair | str,
    dilation: Pair,
    groups: int,
) -> Tensor:
    return F.conv2d(input, weight, bias, stride, padding, dilation, groups)


def _leaky_relu_conv2d(negative_slope: float, inplace: bool, **layer: object) -> Tensor:
    del inplace
    return F.leaky_relu(_conv(**layer), negative_slope)  # type: ignore[arg-type]


def _relu_conv2d(inplace: bool, **layer: object) -> Tensor:
    del inplace
    return torch.relu(_conv(**layer))  # type: ignore[arg-type]


def _pixel_shuffle_conv2d(upscale_factor: int, **layer: object) -> Tensor:
    return F.pixel_shuffle(_conv(**layer), upscale_factor)  # type: ignore[arg-type]


def _relu_batch_norm_conv2d(
    running_mean: Tensor,
    running_var: Tensor,
    bn_weight: Tensor | None,
    bn_bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    inplace: bool,
    **layer: object,
) -> tuple[Tensor, ...]:
    """The result, and with `training` the running statistics after the call."""
    del inplace
    out = torch.relu(
        F.batch_norm(
            _conv(**layer),  # type: ignore[arg-type]
            running_mean,
            running_var,
            bn_weight,
            bn_bias,
            training,
            momentum,
            eps,
        )
    )
    return (out, running_mean, running_var) if training else (out,)


def _prefixed(arguments: Mapping[str, object]) -> Tensor:
    """The convolution of arguments whose names begin with `conv_`, the input's perhaps not."""
    given = {n.removeprefix("conv_"): value for n, value in arguments.items()}
    return _conv(**{"input" if n == "x" else n: v for n, v in given.items()})  # type: ignore[arg-type]


def _relu_max_pool2d_conv2d(
    pool_kernel_size: Pair,
    pool_stride: Pair | None,
    pool_padding: Pair,
    pool_dilation: Pair,
    pool_ceil_mode: bool,
    inplace: bool,
    **layer: object,
) -> Tensor:
    del inplace
    pooled = F.max_pool2d(
        _prefixed(layer), pool_kernel_size, pool_stride, pool_padding, pool_dilation, pool_ceil_mode
    )
    return torch.relu(pooled)


def _silu_layer_norm_conv2d(weight: Tensor | None, ln_eps: float, **layer: object) -> Tensor:
    del weight
    out = _prefixed(layer)
    return F.silu(F.layer_norm(out, out.shape[1:], eps=ln_eps))


def _with_prefix(values: Mapping[str, tuple[Scalar, ...]]) -> dict[str, tuple[Scalar, ...]]:
    return {f"conv_{name}": v for name, v in values.items()}


_task = partial(task, category="Fusion", benchmark=_BENCHMARK, perf=_PERF)

TASKS: tuple[Task, ...] = (
    _task(
        f"fused_leaky_relu_conv2d({_CONV}, negative_slope=0.01, inplace=False)",
        dims=_dims(),
        where=_SIZES,
        attributes={**_VARIED, "negative_slope": (0.25, 0.0), "inplace": (True,)},
        extended=_PAIRS,
        constraints=_rules(),
        reference=_leaky_relu_conv2d,
        description=f"""First the {_LAYER} Then leaky ReLU: each element, times negative_slope
            where it is negative. `inplace` speaks of the convolution's result, not of an input:
            inputs stay as they are.""",
        flops=_flops(),
    ),
    _task(
        f"fused_relu_conv2d({_CONV}, inplace=False)",
        dims=_dims(),
        where=_SIZES,
        attributes={**_MORE, "inplace": (True,)},
        constraints=_rules(),
        reference=_relu_conv2d,
        description=f"""First the {_LAYER} Then ReLU, the larger of each element and 0; NaN stays
            NaN. `inplace` speaks of the convolution's result, not of an input: inputs stay as they
            are.""",
        flops=_flops(),
    ),
    _task(
        "fused_pixel_shuffle_conv2d(input[N, C, H, W], "
        "weight[O * upscale_factor * upscale_factor, C // groups, KH, KW], "
        "bias[O * upscale_factor * upscale_factor]?, stride=1, padding=0, dilation=1, groups=1, "
        "upscale_factor=2)",
        dims=_dims(),
        where=_SIZES,
        attributes={**_VARIED, "upscale_factor": (3, 1)},
        extended=_PAIRS,
        constraints=_rules(out="O * upscale_factor * upscale_factor"),
        reference=_pixel_shuffle_conv2d,
        description=f"""First the {_LAYER} Its number of channels is a multiple of r * r with
            r = upscale_factor. Then pixel shuffle: the result has O / r^2 channels, r times as
            many rows and columns, and out[n, c, h * r + i, w * r + j] is the convolution's channel
            c * r * r + i * r + j at (h, w).""",
        flops=_flops(out="O * upscale_factor * upscale_factor"),
    ),
    _task(
        f"fused_relu_batch_norm_conv2d({_CONV}, running_mean[O], running_var[O]: positive, "
        "bn_weight[O]?, bn_bias[O]?, training=False, momentum=0.1, eps=1e-5, inplace=False)",
        dims=_dims(channels=256),
        where=_SIZES,
        attributes={
            **_MORE,
            "training": (True,),
            "momentum": (0.5,),
            "eps": (0.25,),
            "inplace": (True,),
        },
        constraints=(*_rules(), "not training or N * rows * columns > 1"),
        values=_MODERATE,
        mutates={"running_mean": "training", "running_var": "training"},
        outputs=(
            Output(),
            Output(name="running_mean", when="training"),
            Output(name="running_var", when="training"),
        ),
        reference=_relu_batch_norm_conv2d,
        description=f"""First the {_LAYER} Then batch normalization of each channel: less the mean,
            over the square root of the variance plus eps, times bn_weight and plus bn_bias where
            they are not None. Without `training` mean and variance are running_mean and
            running_var, which stay as they are; with it they are those of the channel over images,
            rows and columns (the variance biased), and the running ones are updated in place:
            (1 - momentum) * running + momentum * batch's, where this variance is the unbiased one.
            Last ReLU. `inplace` speaks of intermediate results only.""",
        flops=_flops(),
        promises=Promises(
            recipes=("channel_offsets",),
            not_tried={"running_mean=None": "PyTorch needs statistics unless it trains"},
        ),
    ),
    _task(
        "fused_relu_max_pool2d_conv2d(input[N, C, H, W], weight[O, C // conv_groups, KH, KW], "
        "bias[O]?, conv_stride=1, conv_padding=0, conv_dilation=1, conv_groups=1, "
        "pool_kernel_size=2, pool_stride=None, pool_padding=0, pool_dilation=1, "
        "pool_ceil_mode=False, inplace=False)",
        dims=_dims(),
        where={**_CONV_SIZES, **_POOLED},
        attributes={
            **_with_prefix(_MORE),
            "pool_kernel_size": (3, (2, 3)),
            "pool_stride": (1, 3, (2, 1)),
            "pool_padding": (1, (1, 0)),
            "pool_dilation": (2, (1, 2)),
            "pool_ceil_mode": (True,),
            "inplace": (True,),
        },
        constraints=(*_rules("conv_"), *_POOLED),
        reference=_relu_max_pool2d_conv2d,
        description=f"""First, with the arguments conv_..., the {_LAYER} Then the largest value of
            windows of pool_kernel_size whose elements stand pool_dilation apart; windows
            stand pool_stride apart (None: pool_kernel_size), with pool_padding on all sides that
            never wins; each is an int for both dims or a pair. pool_ceil_mode rounds the number of
            windows up, but a window starts within the image or its left padding. NaN wins. Last
            ReLU. `inplace` speaks of intermediate results only.""",
        flops=_flops("conv_"),
    ),
    _task(
        "fused_silu_layer_norm_conv2d(x[N, C, H, W], weight[O]: ones, "
        "conv_weight[O, C // conv_groups, KH, KW], conv_bias[O]?, conv_stride=1, conv_padding=0, "
        "conv_dilation=1, conv_groups=1, ln_eps=1e-5)",
        dims=_dims(channels=256),
        where=_CONV_SIZES,
        attributes={**_with_prefix(_VARIED), "ln_eps": (0.25, 4.0)},
        extended=_with_prefix(_PAIRS),
        constraints=_rules("conv_"),
        values=_MODERATE,
        reference=_silu_layer_norm_conv2d,
        description=f"""First, with the arguments conv_..., the {_LAYER} Here the input is called x.
            Then layer normalization of each image over channels, rows and columns together: less
            the mean, over the square root of the biased variance plus ln_eps; `weight` holds O
            ones, so nothing is multiplied. Last SiLU, x * sigmoid(x).""",
        flops=_flops("conv_"),
        promises=Promises(recipes=("common_offset",)),
    ),
)
