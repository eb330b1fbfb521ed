"""Look-ups with something behind them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.spec import (
    Benchmark,
    Output,
    Promises,
    Sizes,
    Task,
    Variants,
    nonempty,
    task,
)


def _renormed(weight: Tensor, max_norm: float | None, norm_type: float) -> Tensor:
    if max_norm is None:
        return weight
    norms: Tensor = torch.linalg.vector_norm(weight, norm_type, dim=-1, keepdim=True)
    return torch.where(norms > max_norm, weight * (max_norm / (norms + 1e-7)), weight)


def _embedding_add_tanh(
    input_indices: Tensor,
    weight: Tensor,
    other: Tensor,
    padding_idx: int | None,
    max_norm: float | None,
    norm_type: float,
    scale_grad_by_freq: bool,
) -> Tensor:
    rows = F.embedding(
        input_indices,
        _renormed(weight, max_norm, norm_type),
        padding_idx,
        scale_grad_by_freq=scale_grad_by_freq,
    )
    return torch.tanh(rows + other)


def _gather_masked_fill(
    input: Tensor, dim: int, index: Tensor, mask: Tensor, value: float
) -> Tensor:
    return input.gather(dim, index).masked_fill(mask, value)


def _index_select_eq(input: Tensor, dim: int, index: Tensor, other: Tensor) -> Tensor:
    return input.index_select(dim, index) == other


def _fused_embedding_add_tanh_other(B: int, T: int, D: int, _rank: int, _other: str) -> Sizes:
    if _other == "same":
        return (B, T, D) if _rank == 2 else (T, D)
    if _other == "table":
        return (T, D)
    return (D,)


def _fused_index_select_eq_other(M: int, N: int, K: int, dim: int, _other: str) -> Sizes:
    if _other == "same":
        return (M, K) if dim % 2 else (K, N)
    if _other == "row":
        return (K,) if dim % 2 else (N,)
    return ()


def _extent(M: int, N: int, dim: int) -> int:
    return N if dim % 2 else M


TASKS: tuple[Task, ...] = (
    task(
        "fused_embedding_add_tanh(input_indices[*input_indices_shape]: index(V), weight[V, D], "
        "other[*other_shape], padding_idx=None, max_norm=None, norm_type=2.0, "
        "scale_grad_by_freq=False, _rank=2, _other='same')",
        category="Fusion",
        dims={
            "B": "batch",
            "T": "batch",
            **nonempty(V="batch", D="channel"),
        },
        where={
            "input_indices_shape": Variants("_rank", {2: "B, T", 1: "T"}),
            "other_shape": _fused_embedding_add_tanh_other,
        },
        attributes={
            "padding_idx": (0,),
            "max_norm": (1.0, 4.0),
            "norm_type": (1.0,),
            "scale_grad_by_freq": (True,),
            "_rank": (1,),
            "_other": ("table", "row"),
        },
        constraints=(
            "_rank == 2 or B == 1",
            "norm_type == 2.0 or max_norm is not None",
            # The prompt does not say whether a gradient goes through the norm.
            "_call != 'backward' or max_norm is None",
        ),
        reference=_embedding_add_tanh,
        may_overwrite={"weight": "max_norm is not None"},
        description="""tanh(weight[input_indices] + other): the indices, int64 of any shape, each
            pick a row of weight[V, D]; other has the shape of the picked rows or broadcasts to it;
            the result has that shape and the dtype of weight. padding_idx and scale_grad_by_freq
            matter to gradients alone: that of the row padding_idx is 0, and with scale_grad_by_freq
            that of a row is divided by how often it was picked. If max_norm is a number, a row
            whose norm_type-norm is above it is multiplied by max_norm / (norm + 1e-7) before use;
            weight may be overwritten by its rows so changed, or left as it is.""",
        flops="6*B*T*D",
        bytes="(8 + 3*itemsize*D)*B*T",
        benchmark={"B": 4, "T": 16, "V": 64, "D": 64},
        perf=(
            {"B": 8, "T": 512, "V": 8192, "D": 256},
            {"B": 16, "T": 1024, "V": 32768, "D": 1024},
            {"B": 32, "T": 2048, "V": 50257, "D": 1024},
        ),
        promises=Promises(
            out=True,
            gradients=True,
            not_tried={"sparse": "gradients are compared as dense tensors"},
        ),
    ),
    task(
        "fused_gather_masked_fill(input[M, N], dim=1, index[I, J]: index(extent), "
        "mask[*mask_shape]: bool, value=0.0)",
        category="Fusion",
        dims={
            **nonempty(M="batch", N="channel"),
            "I": "batch",
            "J": "channel",
        },
        where={
            "extent": _extent,
            "mask_shape": Variants("_mask", {"same": "I, J", "row": "J", "column": "I, 1"}),
        },
        attributes={"dim": (0, -1, -2), "value": (-1.5, float("inf"))},
        constraints=("I <= M or dim % 2 == 0", "J <= N or dim % 2 == 1"),
        reference=_gather_masked_fill,
        description="""out[i, j] = input[i, index[i, j]] for dim 1 (or -1) and
            input[index[i, j], j] for dim 0 (or -2); then value where mask, which broadcasts to
            the shape of index, is True, even over NaN. The index has as many dims as the input
            and is no longer than it along the other dim, but may be shorter there. The result has
            the shape of index and the dtype of input.""",
        flops="0",
        benchmark={"M": 32, "N": 64, "I": 32, "J": 64},
        perf=(
            {"M": 1024, "N": 1024, "I": 1024, "J": 1024},
            {"M": 4096, "N": 4096, "I": 4096, "J": 4096},
            {"M": 8192, "N": 8192, "I": 8192, "J": 8192},
        ),
        promises=Promises(
            out=True,
            gradients=True,
            not_tried={"sparse_grad": "gradients are compared as dense tensors"},
        ),
    ),
    task(
        # Random numbers differ; their signs are equal half of the time.
        "fused_index_select_eq(input[M, N]: sign, dim=0, index[K]: index(extent), "
        "other[*other_shape]: sign, _other='same')",
        category="Fusion",
        dims={
            **nonempty(M="batch", N="channel"),
            "K": "channel",
        },
        where={"extent": _extent, "other_shape": _fused_index_select_eq_other},
        attributes={"dim": (1, -1, -2), "_other": ("row", "scalar")},
        promises=Promises(
            numbers=("other",),
            out=True,
            not_tried={"index as int32": "indices are int64 in every case"},
        ),
        reference=_index_select_eq,
        outputs=(Output(dtype="bool", compare="exact"),),
        description="""The rows (dim 0 or -2) or columns (dim 1 or -1) of input that the int64
            index names, in its order and as often as it names them, compared with other: True
            where the two are equal, a bool tensor of the shape of what was selected. other is a
            tensor that broadcasts to that, of the input's dtype; NaN equals nothing.""",
        flops="M*K",
        benchmark=Benchmark(dims={"M": 64, "N": 128, "K": 64}, distribution="normal"),
        perf=(
            {"M": 1024, "N": 1024, "K": 1024},
            {"M": 4096, "N": 4096, "K": 4096},
            {"M": 8192, "N": 8192, "K": 8192},
        ),
    ),
)
