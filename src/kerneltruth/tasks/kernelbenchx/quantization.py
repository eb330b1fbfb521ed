"""Products and normalizations in int8 and int4: floats in, floats out, codes in between.

The right answer of such a kernel is not unique, so `tasks/explained.py` judges it by two things.
Against the float64 result it must keep the published thresholds (cosine similarity, relative L1
error, root mean square error); where the usual scheme, on one of its tops, is not within half of
one on these inputs, it may be one and a half times as far off as the worst scheme without groups.
And it must be explained by quantized arithmetic: every element must lie within the rounding of
float32 of what one and the same member of a family of quantizations gives. A kernel that computes
in floats keeps the thresholds and is not explained.

Only float32 is declared for the int8 operators, whose published description promises float32
results whatever the inputs, and only half precision for the int4 one. Inputs that hold NaN or
infinity have no codes; nothing is demanded of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F

from kerneltruth.tasks.claims import Evidence
from kerneltruth.tasks.explained import LENIENT, OUTPUTS, STRICT, how, judge
from kerneltruth.tasks.int4 import USUAL_WEIGHTS, linear_w4a16
from kerneltruth.tasks.misquantized import int4
from kerneltruth.tasks.misquantized.int8 import in_tf32, of_product
from kerneltruth.tasks.promises import Promises
from kerneltruth.tasks.quantized import Member, Quantized, bilinear
from kerneltruth.tasks.scalings import Scaling, on_each, scaled, together
from kerneltruth.tasks.spec import Dim, Task, Variants, nonempty, task

_SHAPE = Variants("_rank", {2: "M, K", 3: "2, M, K"})


def _matmul_w8a8(
    e: Evidence, of_left: Scaling = scaled, of_right: Scaling = scaled
) -> Iterator[Member]:
    x, w = e.inputs["input"], e.inputs["weight"]
    assert x is not None
    assert w is not None
    lead = tuple(range(x.ndim))
    left = of_left(x, {"tensor": lead, "row": (-1,)}, -1)
    right = of_right(w, {"tensor": (0, 1), "column": (0,)}, 0)
    yield from bilinear(torch.matmul, left, right, x.shape[-1], pairs=together)


def _bmm_w8a8(
    e: Evidence, of_left: Scaling = scaled, of_right: Scaling = scaled
) -> Iterator[Member]:
    x, w = e.inputs["input"], e.inputs["mat2"]
    assert x is not None
    assert w is not None
    left = of_left(x, {"tensor": (0, 1, 2), "batch": (1, 2), "row": (-1,)}, -1)
    right = of_right(w, {"tensor": (0, 1, 2), "batch": (1, 2), "column": (1,)}, 1)
    yield from bilinear(torch.bmm, left, right, x.shape[-1], pairs=together)


def _conv2d_w8a8(
    e: Evidence, of_left: Scaling = scaled, of_right: Scaling = scaled
) -> Iterator[Member]:
    x, w, bias = e.inputs["input"], e.inputs["weight"], e.inputs["bias"]
    assert x is not None
    assert w is not None
    stride, padding = e.scalars["stride"], e.scalars["padding"]
    left = of_left(x, {"tensor": (0, 1, 2, 3), "image": (1, 2, 3), "channel": (0, 2, 3)}, None)
    left += of_left(x, {"image and channel": (2, 3)}, None)
    flat = w.flatten(1)
    right = [
        (name, Quantized(values=q.values.reshape(w.shape), slack=q.slack.reshape(w.shape)))
        for name, q in of_right(flat, {"tensor": (0, 1), "channel": (1,)}, 1)
    ]
    yield from bilinear(
        lambda a, b: F.conv2d(a, b, None, stride, padding),
        left,
        right,
        flat.shape[1],
        None if bias is None else bias.reshape(1, -1, 1, 1),
        pairs=together,
    )


_SMALL = {"M": 32, "N": 32, "K": 64}
_PERF = tuple({"M": n, "N": n, "K": n} for n in (512, 2048, 4096))

_task = partial(task, category="Quantization", dtypes=("float32",), outputs=OUTPUTS)

_DECLARED: tuple[Task, ...] = (
    _task(
        "bmm_w8a8(input[B, M, K], mat2[B, K, N])",
        dims={"B": "batch", "M": "spatial", "N": "channel", "K": "contracted"},
        reference=lambda input, mat2: input @ mat2,
        claims=partial(
            judge, family=_bmm_w8a8, usual=on_each("row/{0} x column/{0}"), thresholds=STRICT
        ),
        description="The matrix product of each pair of input and mat2: [B, M, N]. "
        + how(
            """input is quantized to symmetric int8 with one scale per row, per batch or per tensor,
            mat2 with one per column of a batch, per batch or per tensor, or either with one per
            group of 32, 64 or 128 neighbours along K.""",
            STRICT,
        ),
        flops="2*B*M*N*K",
        benchmark={"B": 2, **_SMALL},
        perf=tuple({"B": 8, **shape} for shape in _PERF),
    ),
    _task(
        "conv2d_w8a8(input[N, C, H, W], weight[O, C, P, Q], bias[O]?, stride=1, padding=0)",
        dims={
            "N": "batch",
            "C": Dim(symbol="C", role="contracted", low=1, high=4096),
            "O": Dim(symbol="O", role="channel", low=1, high=4096),
            **nonempty(H="spatial", W="spatial"),
            "P": Dim(symbol="P", role="contracted", low=1, high=5),
            "Q": Dim(symbol="Q", role="contracted", low=1, high=5),
        },
        attributes={"stride": (2,), "padding": (1, 2)},
        constraints=("P <= H + 2*padding", "Q <= W + 2*padding"),
        reference=lambda input, weight, bias, stride, padding: F.conv2d(
            input, weight, bias, stride, padding
        ),
        claims=partial(
            judge, family=_conv2d_w8a8, usual=on_each("tensor/{0} x channel/{0}"), thresholds=STRICT
        ),
        description="""The 2D cross-correlation of input with weight, with windows `stride` apart on
            an image padded with `padding` zeros on each side, plus bias per output channel where
            it is given: [N, O, (H + 2 * padding - P) // stride + 1, ...]. """
        + how(
            """input is quantized to symmetric int8 with one scale per tensor, per image, per
            channel or per channel of an image, weight with one per output channel, per tensor or
            per group of 32, 64 or 128 neighbours of an output channel's C * P * Q weights. The
            bias is added in float32.""",
            STRICT,
        ),
        flops="2*N*O*C*P*Q*(H//stride)*(W//stride)",
        benchmark={"N": 1, "C": 8, "O": 8, "H": 12, "W": 12, "P": 3, "Q": 3},
        perf=(
            {"N": 8, "C": 64, "O": 64, "H": 56, "W": 56, "P": 3, "Q": 3},
            {"N": 32, "C": 128, "O": 128, "H": 56, "W": 56, "P": 3, "Q": 3},
            {"N": 64, "C": 256, "O": 256, "H": 56, "W": 56, "P": 3, "Q": 3},
        ),
    ),
    _task(
        "linear_w4a16(input[*shape], weight[N, K], bias[N]?)",
        dims={"M": "batch", "N": "channel", "K": "contracted"},
        where={"shape": _SHAPE},
        extended={"_rank": (3,)},
        promises=Promises(dtypes=("float16",)),
        dtypes=("float16", "bfloat16"),
        reference=lambda input, weight, bias: F.linear(input, weight, bias),
        claims=partial(judge, family=linear_w4a16, usual=USUAL_WEIGHTS, thresholds=LENIENT),
        description="""input @ weight.T plus bias where it is given, for a weight [N, K] and an
            input whose last dim is K. The weight is quantized to symmetric int4, the input is not:
            codes = round(w / scale), clamped to [-8, 7] or [-7, 7], with scale = max|w| / 7 (or
            / 7.5 or / 8) per row of the weight, per tensor or per group of 32, 64 or 128
            neighbours along K, taken from the weight of the call; ties may be rounded either way,
            and a scale of 0 gives codes of 0. A scale, and a code times its scale, may be rounded
            to the input's dtype; products are summed in float32 and rounded once to that dtype.
            The result must agree within that rounding with one such choice for all elements, which
            a computation with the weight itself does not, and keep cosine similarity >= 0.9,
            relative L1 error <= 0.1 and root mean square error <= 0.15 against the float result;
            where one scale per row is not within half of a limit on these inputs, one and a
            half times the error of the worst choice without groups is the limit. Inputs that are
            not finite are not judged.""",
        flops="2*M*N*K",
        benchmark=_SMALL,
        perf=_PERF,
    ),
    _task(
        "matmul_w8a8(input[*shape], weight[K, N])",
        dims={"M": "batch", "N": "channel", "K": "contracted"},
        where={"shape": _SHAPE},
        extended={"_rank": (3,)},
        reference=lambda input, weight: input @ weight,
        claims=partial(
            judge, family=_matmul_w8a8, usual=on_each("row/{0} x column/{0}"), thresholds=STRICT
        ),
        description="The matrix product of input [M, K] and weight [K, N]; input may have a "
        "leading dim more. "
        + how(
            """input is quantized to symmetric int8 with one scale per row or per tensor, weight
            with one per column or per tensor, or either with one per group of 32, 64 or 128
            neighbours along K.""",
            STRICT,
        ),
        flops="2*M*N*K",
        benchmark=_SMALL,
        perf=_PERF,
    ),
)
_CHANGES = {
    "bmm_w8a8": (of_product(_bmm_w8a8), ("input", "mat2")),
    "conv2d_w8a8": (of_product(_conv2d_w8a8), ("input", "weight")),
    "linear_w4a16": (int4.CHANGES, ()),
    "matmul_w8a8": (of_product(_matmul_w8a8), ("input", "weight")),
}


def _with_changes(declared: Task) -> Task:
    changes, factors = _CHANGES[declared.name]
    more = in_tf32(declared.reference, *factors) if factors else ()
    return replace(declared, changed_rules=(*changes, *more))


TASKS = tuple(map(_with_changes, _DECLARED))
