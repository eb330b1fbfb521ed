"""Operators that move elements: gather, scatter, fill, select, sort a few, transpose, roll."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

from kerneltruth.tasks.promises import Promises
from kerneltruth.tasks.spec import Dim, Output, Role, Task, task

_ROWS: dict[str, Role] = {"M": "batch", "N": "channel"}
_LARGE = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 4096}, {"M": 8192, "N": 8192})
# As many elements in all, about, where two or three tensors have the shape.
_LARGE_PAIR = ({"M": 1024, "N": 1024}, {"M": 4096, "N": 2048}, {"M": 8192, "N": 8192})
_LARGE_TRIPLE = ({"M": 1024, "N": 1024}, {"M": 2048, "N": 2048}, {"M": 8192, "N": 8192})


def accept_top_indices(
    inputs: Mapping[str, Any], outputs: Sequence[Any], reference: Sequence[Any]
) -> torch.Tensor:
    """An index is right if it is in range, points at the value due there, and comes once a row."""
    x: torch.Tensor = inputs["input"].double()
    wanted: torch.Tensor = reference[0].double()
    indices: torch.Tensor = outputs[1].long()
    in_range = (indices >= 0) & (indices < x.shape[-1])
    found = x.gather(-1, indices.clamp(0, max(x.shape[-1] - 1, 0)))
    same = (found == wanted) | (found.isnan() & wanted.isnan())
    repeated = (indices.unsqueeze(-1) == indices.unsqueeze(-2)).sum(-1) > 1
    return in_range & same & ~repeated


def _topk(input: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    top = torch.topk(input, k, dim=-1)
    return top.values, top.indices


_task = partial(task, category="Index")

TASKS: tuple[Task, ...] = (
    _task(
        "embedding(input[T]: index(V), weight[V, D])",
        dims={"T": "batch", "V": Dim(symbol="V", role="batch", low=1), "D": "channel"},
        reference=lambda input, weight: weight[input],
        description="Row input[t] of weight for every t: out[T, D].",
        flops="0",
        # As many rows are read as T random indices differ in.
        bytes="8*T + itemsize*D*(T + V*(1 - (1 - 1/V)**T))",
        benchmark={"T": 64, "V": 128, "D": 128},
        perf=(
            {"T": 2048, "V": 4096, "D": 256},
            {"T": 8192, "V": 32000, "D": 512},
            {"T": 32768, "V": 128256, "D": 1024},
        ),
    ),
    _task(
        "index_select(input[M, N], index[K]: index(M))",
        dims={"M": Dim(symbol="M", role="batch", low=1), "N": "channel", "K": "batch"},
        reference=lambda input, index: input.index_select(0, index),
        description="Rows of input picked by index along dim 0: out[K, N].",
        flops="0",
        # As many rows are read as K random indices differ in.
        bytes="8*K + itemsize*N*(K + M*(1 - (1 - 1/M)**K))",
        benchmark={"M": 64, "N": 128, "K": 64},
        perf=(
            {"M": 4096, "N": 256, "K": 4096},
            {"M": 16384, "N": 512, "K": 16384},
            {"M": 65536, "N": 1024, "K": 65536},
        ),
    ),
    _task(
        "gather(input[M, N], index[M, K]: index(N))",
        dims={"M": "batch", "N": Dim(symbol="N", role="channel", low=1), "K": "channel"},
        reference=lambda input, index: input.gather(1, index),
        description="out[i, j] = input[i, index[i, j]]: out[M, K].",
        flops="0",
        bytes="8*M*K + itemsize*M*(K + min(K, N))",
        benchmark={"M": 32, "N": 64, "K": 64},
        perf=(
            {"M": 1024, "N": 1024, "K": 1024},
            {"M": 4096, "N": 2048, "K": 2048},
            {"M": 8192, "N": 8192, "K": 8192},
        ),
    ),
    _task(
        "scatter_add(input[N], index[K]: index(N), src[K])",
        dims={"N": Dim(symbol="N", role="channel", low=1), "K": "reduced"},
        reference=lambda input, index, src: input.scatter_add(0, index, src),
        description="""A copy of input to which src[k] is added at index[k] for every k; the same
            index may come several times. The input itself stays as it is.""",
        promises=Promises(
            never={"bfloat16": "K > 16 * N", "float16": "K > 128 * N"},
            not_tried={
                "many additions to one element in half precision": "PyTorch's own atomic additions "
                "round each sum, and come to a standstill"
            },
        ),
        flops="K",
        benchmark={"N": 256, "K": 1024},
        perf=({"N": 2**16, "K": 2**18}, {"N": 2**20, "K": 2**22}, {"N": 2**22, "K": 2**24}),
    ),
    _task(
        "masked_fill(input[M, N], mask[M, N]: bool, value=0.0)",
        dims=_ROWS,
        attributes={"value": (1.5, float("-inf"))},
        reference=lambda input, mask, value: input.masked_fill(mask, value),
        description="input where mask is False, value where it is True, even over NaN.",
        flops="0",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE_PAIR,
    ),
    _task(
        "where(condition[M, N]: bool, input[M, N], other[M, N])",
        dims=_ROWS,
        reference=lambda condition, input, other: torch.where(condition, input, other),
        description="input where condition is True, other elsewhere.",
        flops="0",
        benchmark={"M": 32, "N": 128},
        perf=_LARGE_TRIPLE,
    ),
    _task(
        "topk(input[M, N], k=3)",
        category="Reduce",
        dims={"M": "batch", "N": Dim(symbol="N", role="reduced", low=1)},
        attributes={"k": (1, 4)},
        constraints=("k <= N",),
        outputs=(
            Output(name="values"),
            Output(name="indices", dtype="int64", compare="accept", accept=accept_top_indices),
        ),
        reference=_topk,
        description="""The k largest values of each row, largest first, and their int64 indices.
            NaN counts as larger than any number. Among equal values any order is right, but an
            index comes only once.""",
        flops="k*M*N",
        benchmark={"M": 16, "N": 128},
        perf=_LARGE,
    ),
    _task(
        "transpose_copy(input[M, N])",
        dims={"M": "spatial", "N": "spatial"},
        reference=lambda input: input.T.contiguous(),
        description="A contiguous copy of the transpose: out[N, M].",
        flops="0",
        benchmark={"M": 64, "N": 64},
        perf=_LARGE,
    ),
    _task(
        "roll(input[M, N], shifts=1)",
        dims={"M": "batch", "N": "spatial"},
        attributes={"shifts": (-3, 1000)},
        reference=lambda input, shifts: torch.roll(input, shifts, -1),
        description="""out[i, (j + shifts) mod N] = input[i, j]; shifts may be negative or larger
            than N.""",
        flops="0",
        benchmark={"M": 16, "N": 128},
        perf=_LARGE,
    ),
)
