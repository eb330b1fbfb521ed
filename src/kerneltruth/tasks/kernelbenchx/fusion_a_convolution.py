"""Two-dimensional convolutions with something behind them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks import dropped
from kerneltruth.tasks.dropped import keep, scaled
from kerneltruth.tasks.formulas import gelu_by_formula, stored
from kerneltruth.tasks.spec import (
    Benchmark,
    Dim,
    Promises,
    Role,
    Scalar,
    Sizes,
    Task,
    nonempty,
    task,
)
from kerneltruth.tasks.windows import Each, steps

_INPUTS = "input[N, C, H, W], weight[O, C // groups, KH, KW], bias[O]?"
_SETTINGS = "stride=1, padding=0, dilation=1, groups=1"
_DIMS: dict[str, Role | Dim] = {
    "N": Dim(symbol="N", role="batch", low=1),
    "C": Dim(symbol="C", role="contracted", low=1, high=512),
    **nonempty(H="spatial", W="spatial", O="channel"),
    "KH": Dim(symbol="KH", role="contracted", low=1, high=3),
    "KW": Dim(symbol="KW", role="contracted", low=1, high=3),
}
_BENCHMARK = Benchmark(
    dims={"N": 2, "C": 4, "H": 12, "W": 12, "O": 6, "KH": 3, "KW": 3}, distribution="normal"
)
_PERF = (
    {"N": 8, "C": 32, "H": 32, "W": 32, "O": 64, "KH": 3, "KW": 3},
    {"N": 32, "C": 64, "H": 56, "W": 56, "O": 128, "KH": 3, "KW": 3},
    {"N": 64, "C": 128, "H": 64, "W": 64, "O": 256, "KH": 3, "KW": 3},
)

_PAIRS: dict[str, tuple[Scalar, ...]] = {
    "stride": (2, (2, 1)),
    "padding": (1, (1, 0), "same", "valid"),
    "dilation": (2, (1, 2)),
    "groups": (2,),
}


def _row_steps(H: int, KH: int, stride: Each, padding: Each | str, dilation: Each) -> int:
    return steps(H, KH, 0, stride, padding, dilation)


def _column_steps(W: int, KW: int, stride: Each, padding: Each | str, dilation: Each) -> int:
    return steps(W, KW, 1, stride, padding, dilation)


def _rows(H: int, row_steps: int, padding: Each | str) -> int:
    return H if padding == "same" else row_steps + 1


def _columns(W: int, column_steps: int, padding: Each | str) -> int:
    return W if padding == "same" else column_steps + 1


def _other(N: int, O: int, rows: int, columns: int, _other: str) -> Sizes:
    shapes = {"same": (N, O, rows, columns), "channel": (O, 1, 1), "row": (columns,)}
    return shapes.get(_other, ())


_COUNTS: dict[str, Callable[..., int]] = {
    "row_steps": _row_steps,
    "column_steps": _column_steps,
    "rows": _rows,
    "columns": _columns,
}
_CONSTRAINTS = (
    "C % groups == 0",
    "O % groups == 0",
    "padding != 'same' or stride == 1",
    "row_steps >= 0",
    "column_steps >= 0",
)
_FLOPS = "2*N*O*(C // groups)*KH*KW*H*W"

_CONVOLVED = """input[N, C, H, W] is convolved with weight[O, C / groups, KH, KW] (no flip of the
    kernel) and bias[O], which may be None: output channel o of group g = o // (O / groups) sums
    over the C / groups input channels of that group, at rows i * stride + r * dilation - padding
    of the input, where what lies outside of it counts as 0. """
_SIZES = """stride, padding and dilation are ints for both dims or pairs (rows, columns); padding
    may be 'valid' for 0 or 'same', which with stride 1 gives H x W outputs (the padding is
    dilation * (KH - 1) in all, the odd one at the end). """


def _conv2d_add(other: Tensor | None, alpha: float, **convolution: Any) -> Tensor:
    result = F.conv2d(**convolution)
    return result if other is None else result + alpha * other


def _relu_dropout(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int,
    padding: int | str,
    dilation: int,
    groups: int,
    keep: float,
) -> Tensor:
    result = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return scaled(torch.relu(F.batch_norm(result, None, None, training=True)), keep)


def _gelu_conv2d(approximate: str, **convolution: Any) -> Tensor:
    return F.gelu(F.conv2d(**convolution), approximate=approximate)


def _gelu_conv2d_by_formula(approximate: str, **convolution: Any) -> Tensor:
    x = stored(F.conv2d(**convolution), convolution["input"], convolution["weight"])
    return gelu_by_formula(x, approximate)


def _instance_norm(eps: float, **convolution: Any) -> Tensor:
    return F.instance_norm(F.selu(F.conv2d(**convolution)), eps=eps)


def _instance_norm_by_steps(eps: float, **convolution: Any) -> Tensor:
    x = stored(F.conv2d(**convolution), convolution["input"], convolution["weight"])
    x = stored(F.selu(x), convolution["input"], convolution["weight"])
    centered = x - x.mean((-2, -1), True)
    return centered / torch.sqrt(centered.square().mean((-2, -1), True) + eps)


_task = partial(
    task, category="Fusion", dims=_DIMS, benchmark=_BENCHMARK, perf=_PERF, where=_COUNTS
)

TASKS: tuple[Task, ...] = (
    _task(
        f"fused_conv2d_add({_INPUTS}, other[*other_shape]?, {_SETTINGS}, alpha=1, _other='same')",
        where={**_COUNTS, "other_shape": _other},
        attributes=_PAIRS | {"alpha": (0.5, -2), "_other": ("channel", "row", "scalar")},
        promises=Promises(numbers=("other",), out=True),
        extended={"_other": ("channel", "row", "scalar")},
        constraints=_CONSTRAINTS,
        reference=_conv2d_add,
        description=f"""{_CONVOLVED} {_SIZES} Then alpha * other is added, unless other is
            None; other is a tensor that broadcasts to the result. The result has the input's
            dtype.""",
        flops=_FLOPS,
    ),
    _task(
        f"fused_dropout_relu_batch_norm_conv2d({_INPUTS}, {_SETTINGS}, p=0.5, training=True, "
        "inplace=False)",
        attributes=_PAIRS | {"p": (0.0, 0.1, 1.0), "training": (False,), "inplace": (True,)},
        constraints=(
            *_CONSTRAINTS,
            "N > 1 or row_steps + column_steps >= 1",
            # All of a few elements may be dropped by chance.
            "not training or p == 0 or N * O * rows * columns >= 96",
        ),
        reference=lambda p, training, inplace, **convolution: _relu_dropout(
            **convolution, keep=keep(p, training)
        ),
        outputs=dropped.outputs(),
        claims=dropped.claims(_relu_dropout),
        random=True,
        description=f"""{_CONVOLVED} {_SIZES} Then batch normalization: from each output
            channel its mean over N and all positions is subtracted, and it is divided by
            sqrt(variance + 1e-5), the variance being the biased one of the same values; there is
            no weight, no bias and there are no running statistics, so that those of the batch
            serve with training False too. Then ReLU. Then, when training is True, dropout: each
            element becomes 0 with probability p, independently of all others and anew in each
            call, and else is multiplied by 1 / (1 - p); with p = 1 all are 0. inplace
            concerns intermediate results only: the inputs are never written. The result has the
            input's dtype.""",
        flops=_FLOPS,
        promises=Promises(recipes=("channel_offsets",)),
    ),
    _task(
        f"fused_gelu_conv2d({_INPUTS}, {_SETTINGS}, approximate='none')",
        attributes=_PAIRS | {"approximate": ("tanh",)},
        constraints=_CONSTRAINTS,
        reference=_gelu_conv2d,
        admissible=(_gelu_conv2d_by_formula,),
        description=f"""{_CONVOLVED} {_SIZES} Then GELU of the result:
            x * (1 + erf(x / sqrt(2))) / 2 for approximate 'none' and
            x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 for 'tanh'; in the input's
            dtype.""",
        flops=_FLOPS,
        promises=Promises(out=True),
    ),
    _task(
        f"fused_instance_norm_selu_conv2d({_INPUTS}, {_SETTINGS}, eps=1e-5)",
        attributes=_PAIRS | {"eps": (1e-2,)},
        extended={"padding": ("same", "valid")},
        promises=Promises(
            recipes=("channel_offsets",),
            not_tried=dict.fromkeys(
                ("num_features", "momentum", "affine", "track_running_stats"),
                "without weights and statistics to pass it has nothing to say",
            ),
        ),
        constraints=(*_CONSTRAINTS, "row_steps + column_steps >= 1"),
        reference=_instance_norm,
        admissible=(_instance_norm_by_steps,),
        description=f"""{_CONVOLVED} {_SIZES} Then SELU: 1.0507009873554805 * x where x > 0, else
            1.0507009873554805 * 1.6732632423543772 * (exp(x) - 1). Then instance normalization:
            from each channel of each image its mean is subtracted, and it is divided by
            sqrt(variance + eps), the variance being the biased one; there is no weight, no bias
            and there are no running statistics (num_features, momentum, affine and
            track_running_stats keep their defaults and change nothing). A channel has at least
            two elements. The result has the input's dtype.""",
        flops=_FLOPS,
    ),
)
