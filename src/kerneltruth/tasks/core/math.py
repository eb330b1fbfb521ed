"""Elementwise arithmetic, scans, counts and a few whole-tensor reductions."""

from __future__ import annotations

from functools import partial

import torch

from kerneltruth.tasks.formulas import LOGIT_WITH_NARROW_ENDS
from kerneltruth.tasks.spec import Dim, Output, Role, Task, nonempty, task

_PLAIN: dict[str, Role] = {"M": "batch", "N": "channel"}
_ROWS: dict[str, Role] = {"M": "batch", "N": "reduced"}
_LARGE = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
# As many elements in all, about, where two or three tensors have the shape.
_LARGE_PAIR = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 2048}, {"M": 8192, "N": 8192})
_LARGE_TRIPLE = ({"M": 1024, "N": 1024}, {"M": 2048, "N": 2048}, {"M": 8192, "N": 8192})


def _masked_softmax(input: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = torch.softmax(input.masked_fill(~mask, float("-inf")), -1)
    return torch.where(mask.any(-1, keepdim=True), weights, 0.0)


def _addcmul(
    input: torch.Tensor, tensor1: torch.Tensor, tensor2: torch.Tensor, value: float
) -> torch.Tensor:
    return input + value * tensor1 * tensor2


_task = partial(task, category="Math")

TASKS: tuple[Task, ...] = (
    _task(
        "floor(input[M, N])",
        dims=_PLAIN,
        reference=lambda input: input.floor(),
        description="The largest integer not above each element, in the input's dtype.",
        flops="M*N",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE,
    ),
    _task(
        "pow(input[M, N], exponent=2.0)",
        dims=_PLAIN,
        attributes={"exponent": (3.0, -1.0, 1.5)},
        reference=lambda input, exponent: torch.pow(input, exponent),
        description="""input to the power of exponent; a negative base with an integral exponent
            is defined, with another one it gives NaN.""",
        flops="M*N",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE,
    ),
    _task(
        "clamp(input[M, N], min=-1.0, max=1.0)",
        dims=_PLAIN,
        attributes={"min": (None, 2.0), "max": (None, 0.5)},
        constraints=("min is not None or max is not None",),
        reference=lambda input, min, max: torch.clamp(input, min, max),
        description="""Each element limited to [min, max]; either end may be None. NaN stays NaN;
            if min is above max, every number becomes max.""",
        flops="2*M*N",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE,
    ),
    _task(
        "rad2deg(input[M, N])",
        dims=_PLAIN,
        reference=lambda input: torch.rad2deg(input),
        description="Radians to degrees: input * 180 / pi.",
        flops="M*N",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE,
    ),
    _task(
        "logit(input[M, N]: probability, eps=None)",
        dims=_PLAIN,
        attributes={"eps": (0.125, 0.001)},
        reference=lambda input, eps: torch.logit(input, eps),
        admissible=LOGIT_WITH_NARROW_ENDS,
        description="""log(x / (1 - x)); unless eps is None, x is input clamped to [eps, 1 - eps].
            Where 1 - eps becomes 1 in the input's dtype, infinity is accepted there.""",
        flops="4*M*N",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE,
    ),
    _task(
        "lerp(input[M, N], end[M, N], weight=0.5)",
        dims=_PLAIN,
        attributes={"weight": (0.25, 1.0, 2.0)},
        reference=lambda input, end, weight: torch.lerp(input, end, weight),
        description="""input + weight * (end - input), written from the nearer end: for weight of
            0.5 and more it is end - (end - input) * (1 - weight).""",
        flops="3*M*N",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE_PAIR,
    ),
    _task(
        "addcmul(input[M, N], tensor1[M, N], tensor2[M, N], value=1.0)",
        dims=_PLAIN,
        attributes={"value": (0.5, -2.0)},
        reference=_addcmul,
        description="input + value * tensor1 * tensor2.",
        flops="3*M*N",
        benchmark={"M": 16, "N": 64},
        perf=_LARGE_TRIPLE,
    ),
    _task(
        "gcd(input[N]: int32, other[N]: int32)",
        dims={"N": Dim(symbol="N", role="channel", high=4097)},
        outputs=(Output(dtype="int32", compare="exact"),),
        dtypes=("float32",),
        reference=lambda input, other: torch.gcd(input, other),
        description="Greatest common divisor of integers of either sign, as torch.gcd.",
        flops="N",
        benchmark={"N": 256},
        perf=({"N": 2**20}, {"N": 2**23}, {"N": 2**26}),
    ),
    _task(
        "cumsum(input[M, N])",
        dims=_ROWS,
        reference=lambda input: input.cumsum(-1),
        description="Running sum along each row.",
        flops="M*N",
        benchmark={"M": 8, "N": 128},
        perf=_LARGE,
    ),
    _task(
        "reverse_cumsum(input[M, N])",
        dims=_ROWS,
        reference=lambda input: input.flip(-1).cumsum(-1).flip(-1),
        description="Running sum along each row from its end: out[i, j] = sum of input[i, j:].",
        flops="M*N",
        benchmark={"M": 8, "N": 128},
        perf=_LARGE,
    ),
    _task(
        "count_nonzero(input[M, N]: bool)",
        category="Reduce",
        dims=_ROWS,
        outputs=(Output(dtype="int64", compare="exact"),),
        dtypes=("float32",),
        reference=lambda input: input.sum(-1),
        description="How many elements of each row are True, as int64.",
        flops="M*N",
        benchmark={"M": 16, "N": 128},
        perf=_LARGE,
    ),
    _task(
        "amax(input[M, N])",
        category="Reduce",
        dims=nonempty(M="reduced", N="reduced"),
        reference=lambda input: input.amax(),
        description="The largest element of the whole tensor, a scalar; NaN if there is one.",
        flops="M*N",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE,
    ),
    _task(
        "masked_softmax(input[M, N], mask[M, N]: bool)",
        dims=_ROWS,
        reference=_masked_softmax,
        description="""Softmax of each row over the elements where mask is True; the others get 0,
            and a row with no True is all 0.""",
        flops="5*M*N",
        benchmark={"M": 16, "N": 128},
        perf=_LARGE_PAIR,
    ),
    _task(
        "gram(input[M, K])",
        category="MatrixMultiply",
        dims={"M": "batch", "K": "contracted"},
        reference=lambda input: input @ input.T,
        description="input @ input.T, accumulated in float32: out[M, M].",
        # The result is symmetric: half of it and the diagonal are enough.
        flops="M*(M + 1)*K",
        benchmark={"M": 32, "K": 64},
        perf=({"M": 512, "K": 512}, {"M": 2048, "K": 2048}, {"M": 4096, "K": 4096}),
    ),
)
