"""Convolutions over two dims and their transposes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F

from kerneltruth.tasks.spec import Dim, Promises, Task, nonempty, task
from kerneltruth.tasks.windows import Each, along, fits

# A dim as the loops over windows see it: small, or nothing of the image is left to convolve.
IMAGE = {
    "N": Dim(symbol="N", role="batch", high=1024),
    "C": Dim(symbol="C", role="contracted", low=1, high=4096),
    "O": Dim(symbol="O", role="channel", low=1, high=4096),
    **nonempty(H="spatial", W="spatial"),
    "P": Dim(symbol="P", role="contracted", low=1, high=5),
    "Q": Dim(symbol="Q", role="contracted", low=1, high=5),
}


def _rows_fit(H: int, P: int, padding: Each | str, dilation: Each) -> bool:
    return fits(H, P, 0, padding, dilation)


def _columns_fit(W: int, Q: int, padding: Each | str, dilation: Each) -> bool:
    return fits(W, Q, 1, padding, dilation)


# The arguments of a convolution as prompts document them, and what holds for them.
WINDOWS = {
    "stride": (2, 3, (2, 1)),
    "padding": (1, 2, "same", "valid", (1, 0)),
    "dilation": (2, (1, 2)),
    "groups": (2, 3),
}
CONVOLVABLE = (
    "C % groups == 0",
    "O % groups == 0",
    "padding != 'same' or stride == 1",
    "rows_fit",
    "columns_fit",
)
SIZES: dict[str, Callable[..., int]] = {
    "rows_fit": _rows_fit,
    "columns_fit": _columns_fit,
    "rows": lambda H, stride: H // along(stride, 0),
    "columns": lambda W, stride: W // along(stride, 1),
}
FLOPS = "2*N*O*(C//groups)*P*Q*rows*columns"
SAYS_WINDOWS = """The image is padded with
    `padding` zeros on each of its four sides; the string "valid" pads none, "same" pads
    dilation * (P - 1) rows and dilation * (Q - 1) columns in all, the smaller half of an
    odd number first,
    and is used with stride 1 only. Windows are `stride` apart and their elements
    `dilation`. Channels are split into `groups`: output channel o sees the C / groups
    input channels of group o // (O / groups). stride, padding and dilation may be pairs,
    for rows and columns. The output has
    (H + 2 * padding - dilation * (P - 1) - 1) // stride + 1 rows, and columns likewise."""
_BENCHMARK = {"N": 2, "C": 8, "O": 8, "H": 16, "W": 16, "P": 3, "Q": 3}
_PERF = (
    {"N": 8, "C": 64, "O": 64, "H": 56, "W": 56, "P": 3, "Q": 3},
    {"N": 32, "C": 128, "O": 128, "H": 56, "W": 56, "P": 3, "Q": 3},
    {"N": 64, "C": 256, "O": 256, "H": 56, "W": 56, "P": 3, "Q": 3},
)

_task = partial(task, category="Convolution", dims=IMAGE, benchmark=_BENCHMARK, perf=_PERF)

TASKS: tuple[Task, ...] = (
    _task(
        "conv2d(input[N, C, H, W], weight[O, C // groups, P, Q], bias[O]?, stride=1, padding=0, "
        "dilation=1, groups=1)",
        where=SIZES,
        attributes=WINDOWS,
        constraints=CONVOLVABLE,
        extended_dtypes=("complex64",),
        promises=Promises(dtypes=("float32", "complex64")),
        reference=lambda input, weight, bias, stride, padding, dilation, groups: F.conv2d(
            input, weight, bias, stride, padding, dilation, groups
        ),
        description=f"""The 2D cross-correlation of input [N, C, H, W] with weight
            [O, C / groups, P, Q], plus bias [O] per output channel where it is given, as in
            torch.nn.functional.conv2d, in the dtype of the input. {SAYS_WINDOWS}""",
        flops=FLOPS,
    ),
    _task(
        "conv_transpose2d(input[N, C, H, W], weight[C, O // groups, P, Q], bias[O]?, stride=1, "
        "padding=0, output_padding=0, groups=1, dilation=1)",
        attributes={
            "stride": (2, 3),
            "padding": (1, 2),
            "output_padding": (1,),
            "groups": (2, 3),
            "dilation": (2,),
        },
        # Beyond this PyTorch on a CPU overflows half precision in sums that it keeps in it.
        values=(-16.0, 16.0),
        constraints=(
            "C % groups == 0",
            "O % groups == 0",
            "output_padding < max(stride, dilation)",
            "(H - 1)*stride - 2*padding + dilation*(P - 1) + output_padding + 1 >= 1",
            "(W - 1)*stride - 2*padding + dilation*(Q - 1) + output_padding + 1 >= 1",
        ),
        reference=lambda input, weight, bias, stride, padding, output_padding, groups, dilation: (
            F.conv_transpose2d(
                input, weight, bias, stride, padding, output_padding, groups, dilation
            )
        ),
        description="""The transpose of a 2D convolution (its gradient with respect to the input),
            as in torch.nn.functional.conv_transpose2d, in the dtype of the input. input is
            [N, C, H, W], weight is [C, O / groups, P, Q] and bias, where it is given, [O]. Element
            (i, j) of input channel c adds weight[c, o, p, q] times itself to row
            i * stride - padding + p * dilation and column j * stride - padding + q * dilation of
            output channel o of its group; what falls outside is dropped. The output has
            (H - 1) * stride - 2 * padding + dilation * (P - 1) + output_padding + 1 rows, and
            columns likewise: output_padding adds rows and columns at the end, which hold what
            falls there, plus the bias. It is smaller than stride or dilation.""",
        flops="2*N*O*(C//groups)*P*Q*H*W",
    ),
)
