"""Pooling with something before it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.formulas import fits_half
from kerneltruth.tasks.fractional import fractional_windows, pooled_at, starts
from kerneltruth.tasks.spec import Benchmark, Dim, Output, Task, Variants, nonempty, task
from kerneltruth.tasks.windows import along

_RATIO = (0.5, 0.7)
_IMAGE = nonempty(H="spatial", W="spatial")


def _similarity(
    x1: Tensor, x2: Tensor, kernel_size: int, stride: int | None, padding: int, eps: float
) -> Tensor:
    cosine = F.cosine_similarity(x1, x2, dim=1, eps=eps).unsqueeze(1)
    return F.avg_pool2d(cosine, kernel_size, stride, padding)


def _similarity_by_steps(
    x1: Tensor, x2: Tensor, kernel_size: int, stride: int | None, padding: int, eps: float
) -> Tensor:
    # An eps of 1e-8 is 0 in float16, so that PyTorch gives NaN for vectors of zeros there.
    least = 0.0 if fits_half(x1, x2) and eps < 2.0**-25 else eps
    norms = [torch.linalg.vector_norm(x, dim=1).clamp_min(least) for x in (x1, x2)]
    cosine = (x1 * x2).sum(1) / norms[0] / norms[1]
    # Other orders of summation are off by what they sum.
    lost = torch.finfo(x1.dtype).eps
    return F.avg_pool2d(cosine.unsqueeze(1), kernel_size, stride, padding) + lost


def _cos_avg(
    input: Tensor,
    kernel_size: int,
    stride: int | None,
    padding: int,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    return F.avg_pool1d(torch.cos(input), kernel_size, steps, padding, ceil_mode, count_include_pad)


def _cos_avg_in_another_order(
    input: Tensor,
    kernel_size: int,
    stride: int | None,
    padding: int,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Tensor:
    given = (kernel_size, stride, padding, ceil_mode, count_include_pad)
    return _cos_avg(input, *given) + torch.finfo(input.dtype).eps


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _fractional(
    input: Tensor,
    kernel_size: int | tuple[int, int],
    output_size: tuple[int, int] | None,
    output_ratio: tuple[float, float] | None,
    return_indices: bool,
) -> tuple[Tensor, ...]:
    """With the random numbers 1/2 for every plane."""
    kernel = _pair(kernel_size)
    height, width = input.shape[-2:]
    if output_size is None:
        assert output_ratio is not None
        output_size = int(height * output_ratio[0]), int(width * output_ratio[1])
    rows = starts(height, output_size[0], kernel[0], 0.5)
    columns = starts(width, output_size[1], kernel[1], 0.5)
    values, indices = pooled_at(torch.relu(input), kernel, rows, columns)
    return (values, indices) if return_indices else (values,)


TASKS: tuple[Task, ...] = (
    task(
        "fused_avg_pool2d_cosine_similarity(x1[N, C, H, W], x2[*other], kernel_size=2, "
        "stride=None, padding=0, eps=1e-8)",
        category="Fusion",
        where={"other": Variants("_x2", {"same": "N, C, H, W", "one": "1, C, H, W"})},
        extended={"_x2": ("one",)},
        dims={**nonempty(N="batch", C="reduced"), **_IMAGE},
        attributes={
            "kernel_size": (3, 1),
            "stride": (1, 3),
            "padding": (1,),
            "eps": (1.0,),
        },
        constraints=("2 * padding <= kernel_size", "kernel_size <= min(H, W) + 2 * padding"),
        reference=_similarity,
        admissible=(_similarity_by_steps,),
        description="""The cosine similarity of x1 and x2 over the channels (dim 1) at every
            position: the sum of products over max(|x1|, eps) * max(|x2|, eps); then its mean over
            square windows of kernel_size, stride apart (None means kernel_size): out[N, 1, H', W'],
            H' = (H + 2 * padding - kernel_size) // stride + 1. The similarities are padded with
            padding zeros on each side, which count in the divisor: it is always kernel_size^2. The
            result has the dtype of x1.""",
        flops="6*N*C*H*W",
        benchmark=Benchmark(dims={"N": 2, "C": 8, "H": 12, "W": 12}, distribution="normal"),
        perf=(
            {"N": 8, "C": 32, "H": 64, "W": 64},
            {"N": 32, "C": 64, "H": 64, "W": 64},
            {"N": 64, "C": 64, "H": 128, "W": 128},
        ),
    ),
    task(
        "fused_cos_avg_pool1d(input[N, C, L], kernel_size=3, stride=None, padding=0, "
        "ceil_mode=False, count_include_pad=True)",
        category="Fusion",
        dims=nonempty(N="batch", C="channel", L="spatial"),
        attributes={
            "kernel_size": (2, 5),
            "stride": (1, 2),
            "padding": (1,),
            "ceil_mode": (True,),
            "count_include_pad": (False,),
        },
        constraints=("2 * padding <= kernel_size", "kernel_size <= L + 2 * padding"),
        values=(-1000.0, 1000.0),
        reference=_cos_avg,
        admissible=(_cos_avg_in_another_order,),
        description="""The cosine of each element, then the mean over windows of kernel_size,
            stride apart (None means kernel_size), of each row of length L. The rows of cosines are
            padded with padding zeros (not with cos(0)) on both sides; these count in the divisor
            unless count_include_pad is False. Their number is
            (L + 2 * padding - kernel_size) / stride + 1, rounded down, or with ceil_mode up, but a
            window must start inside the row or its left padding; what lies beyond the right
            padding never counts. Elements are at most 1000 in size. The result has the input's
            dtype.""",
        flops="12*N*C*L",
        benchmark=Benchmark(dims={"N": 2, "C": 8, "L": 128}, distribution="normal"),
        perf=(
            {"N": 16, "C": 64, "L": 1024},
            {"N": 32, "C": 128, "L": 4096},
            {"N": 64, "C": 256, "L": 4096},
        ),
    ),
    task(
        "fused_fractional_max_pool2d_with_relu(input[N, C, H, W], kernel_size=(2, 2), "
        "output_size:=size, output_ratio:=ratio, return_indices=False, _by='size')",
        category="Fusion",
        dims={
            **nonempty(N="batch", C="channel"),
            **_IMAGE,
            "OH": Dim(symbol="OH", role="spatial", low=1, high=16),
            "OW": Dim(symbol="OW", role="spatial", low=1, high=16),
        },
        where={
            "size": lambda OH, OW, _by: (OH, OW) if _by == "size" else None,
            "ratio": lambda _by: _RATIO if _by == "ratio" else None,
            "rows": lambda H, OH, _by: OH if _by == "size" else int(H * _RATIO[0]),
            "columns": lambda W, OW, _by: OW if _by == "size" else int(W * _RATIO[1]),
            "window_rows": lambda kernel_size: along(kernel_size, 0),
            "window_columns": lambda kernel_size: along(kernel_size, 1),
        },
        attributes={
            "kernel_size": (3, (3, 2)),
            "return_indices": (True,),
            "_by": ("ratio",),
        },
        constraints=(
            "rows >= 1",
            "columns >= 1",
            "rows + window_rows - 1 <= H",
            "columns + window_columns - 1 <= W",
            "_by == 'size' or OH == OW == 1",
        ),
        reference=_fractional,
        outputs=(
            Output(name="values", compare="claims"),
            Output(name="indices", dtype="int64", compare="claims", when="return_indices"),
        ),
        claims=fractional_windows,
        random=True,
        description="""ReLU, then the largest value of windows of kernel_size (an int or a pair
            of rows and columns) that lie at random: out[N, C, OH, OW], where output_size is
            (OH, OW), or output_ratio gives it as (int(H * ratio[0]), int(W * ratio[1])), the other
            of the two being None. Each plane draws one number u in [0, 1) for rows and one for
            columns. With a = (H - KH) / (OH - 1), window i of OH starts at row
            int((i + u) * a) - int(u * a), and the last one at row H - KH; columns alike. A NaN in
            the window wins. With return_indices True there is a second result, int64: the
            position row * W + column of the largest value in its plane, any of several. Values
            have the input's dtype.""",
        flops="N*C*OH*OW*4",
        benchmark=Benchmark(
            dims={"N": 2, "C": 4, "H": 16, "W": 16, "OH": 6, "OW": 8}, distribution="normal"
        ),
        perf=(
            {"N": 16, "C": 64, "H": 32, "W": 32, "OH": 16, "OW": 16},
            {"N": 64, "C": 256, "H": 32, "W": 32, "OH": 16, "OW": 16},
            {"N": 128, "C": 512, "H": 32, "W": 32, "OH": 16, "OW": 16},
        ),
    ),
)
