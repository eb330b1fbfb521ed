"""Reductions: the largest, the sum of exponentials, norms of a sum."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from kerneltruth.tasks.promises import SEVERAL_RESULTS
from kerneltruth.tasks.spec import (
    Claim,
    Evidence,
    Output,
    Promises,
    Task,
    Variants,
    nonempty,
    task,
)

_SHAPE = Variants("_rank", {2: "M, N", 3: "L, M, N", 1: "N"})


def _count(L: int, M: int, N: int, _rank: int) -> int:
    return N * (L * M if _rank == 3 else M if _rank == 2 else 1)


def _along(dim: int | None, _rank: int) -> int:
    return _rank >= (1 if dim in (None, -1, 0) else 2 if dim in (1, -2) else 3)


_DIMS = nonempty(L="batch", M="spatial", N="reduced")
_VECTOR = nonempty(N="reduced")
_ADDED = {"added": Variants("_x", {"same": "N", "one": "1"})}
_ONE_ADDED = {"_x": ("one",)}
_ONE = (0, 1, -2)
_SMALL = {"L": 1, "M": 8, "N": 256}
_PERF = (
    {"L": 1, "M": 1024, "N": 1024},
    {"L": 1, "M": 8192, "N": 4096},
    {"L": 1, "M": 16384, "N": 8192},
)
_VECTORS = tuple({"N": 2**k} for k in (20, 24, 27))
_SAYS_DIM = """`dim` is an int, which may be negative; with `keepdim=True` the reduced dim stays
    with size 1. The input has one, two or three dims."""
# What the sigmoid's own rounding may do to a choice, in units of it.
_SAME_SIGMOID = 8.0


def _points_at(values: Tensor, indices: Tensor, e: Evidence, slack: float) -> Iterator[Claim]:
    """Indices in range, at each of which stands the largest value or one that rounds like it.

    Args:
        values: of which the largest is looked for.
        indices: one for each group of them.
        e: says along which dim the groups lie.
        slack: how far a value may be below the largest, in roundings of it; above 0, results around
            the smallest normal number may have been flushed.
    """
    dim = e.scalars["dim"]
    if dim is None:
        values, indices, dim = values.reshape(-1), indices.reshape(1), 0
    elif not e.scalars["keepdim"]:
        indices = indices.unsqueeze(dim)
    outside = (indices < 0) | (indices >= values.shape[dim])
    yield Claim("indices out of range", float(outside.sum()), 0.0)
    found = values.gather(dim, torch.where(outside, 0, indices))
    most = values.amax(dim, keepdim=True)
    flushed = torch.finfo(getattr(torch, e.dtype)).tiny if slack else 0.0
    near = (most - found <= slack * e.eps * most.abs() + flushed) | (found == most)
    same = near | (found.isnan() & most.isnan())
    yield Claim("indices at which the maximum does not stand", float((~same).sum()), 0.0)


def _is_argmax_of_sigmoid(e: Evidence) -> Iterator[Claim]:
    x = e.inputs["input"]
    assert x is not None
    yield from _points_at(torch.sigmoid(x), e.outputs[0], e, _SAME_SIGMOID)


def _is_index_of_max(e: Evidence) -> Iterator[Claim]:
    x = e.inputs["input"]
    assert x is not None
    yield from _points_at(x.to(torch.float64), e.outputs[1], e, 0.0)


def _max(input: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    found = torch.max(input, dim, keepdim)
    return found.values, found.indices


def _add_norm(y: Tensor, x: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    total = y + alpha * x
    norm: Tensor = torch.linalg.vector_norm(total)
    return norm, total


def _add_dot(y: Tensor, x: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    total = y + alpha * x
    return total.square().sum(), total


def _add_dot_by_product(y: Tensor, x: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    total = y + alpha * x
    return torch.dot(total, total), total


TASKS: tuple[Task, ...] = (
    task(
        "logsumexp(input[*shape], dim=-1, keepdim=False)",
        category="Reduce",
        dims=_DIMS,
        where={"shape": _SHAPE, "along": _along, "count": _count},
        attributes={"dim": _ONE, "keepdim": (True,)},
        constraints=("along",),
        extended_dtypes=("float64",),
        reference=lambda input, dim, keepdim: torch.logsumexp(input, dim, keepdim),
        description=f"""The logarithm of the sum of exp(x) along `dim`, in the input's dtype, with
            the largest element subtracted first so that nothing overflows: minus infinity where all
            elements are, infinity where one is, NaN where one is NaN. {_SAYS_DIM}""",
        flops="4*count",
        benchmark=_SMALL,
        perf=_PERF,
        promises=Promises(out=True),
    ),
    task(
        "max(input[*shape], dim=-1, keepdim=False)",
        category="Reduce",
        dims=_DIMS,
        where={"shape": _SHAPE, "along": _along, "count": _count},
        attributes={"dim": _ONE, "keepdim": (True,)},
        constraints=("along",),
        outputs=(
            Output(name="values"),
            Output(name="indices", dtype="int64", compare="claims"),
        ),
        claims=_is_index_of_max,
        extended_dtypes=("float64", "int32"),
        reference=_max,
        description=f"""The maximum along `dim`, in the input's dtype, and the int64 index at which
            it stands; where it stands several times any of its indices is right. NaN where there is
            one, with the index of a NaN. Two outputs: values, indices. {_SAYS_DIM}""",
        flops="count",
        benchmark=_SMALL,
        perf=_PERF,
        promises=Promises(not_tried={"out": SEVERAL_RESULTS}),
    ),
    task(
        "scaled_add_dot(y[N], x[*added], alpha=0.5)",
        where=_ADDED,
        extended=_ONE_ADDED,
        category="Fusion",
        dims=_VECTOR,
        attributes={"alpha": (-1.0, 0.0, 2.0)},
        mutates={"y": "True"},
        values=(-16.0, 16.0),
        outputs=(Output(), Output(name="y")),
        extended_dtypes=("float64",),
        reference=_add_dot,
        admissible=(_add_dot_by_product,),
        description="""y becomes y + alpha * x, in place, for two vectors of N elements; the result
            is the dot product of the new y with itself, a tensor of no dims in their dtype.""",
        flops="4*N",
        benchmark={"N": 1024},
        perf=_VECTORS,
    ),
    task(
        "scaled_add_norm(y[N], x[*added], alpha=0.5)",
        where=_ADDED,
        extended=_ONE_ADDED,
        category="Fusion",
        dims=_VECTOR,
        attributes={"alpha": (-1.0, 0.0, 2.0)},
        mutates={"y": "True"},
        values=(-16.0, 16.0),
        outputs=(Output(), Output(name="y")),
        extended_dtypes=("float64",),
        reference=_add_norm,
        description="""y becomes y + alpha * x, in place, for two vectors of N elements; the result
            is the Euclidean norm of the new y, a tensor of no dims in their dtype.""",
        flops="4*N",
        benchmark={"N": 1024},
        perf=_VECTORS,
    ),
    task(
        "sigmoid_argmax(input[*shape], dim=None, keepdim=False)",
        category="Fusion",
        dims=_DIMS,
        where={"shape": _SHAPE, "along": _along, "count": _count},
        attributes={"dim": (-1, *_ONE), "keepdim": (True,)},
        constraints=("along", "dim is not None or not keepdim"),
        outputs=(Output(dtype="int64", compare="claims"),),
        claims=_is_argmax_of_sigmoid,
        extended_dtypes=("float64",),
        reference=lambda input, dim, keepdim: torch.sigmoid(input).argmax(dim, keepdim),
        description=f"""The int64 index of the largest 1 / (1 + exp(-x)) along `dim`, or with
            `dim=None` its index into the flattened input, a tensor of no dims (`keepdim` is False
            then). Where several are equal, or differ by the sigmoid's own rounding, any of their
            indices is right. The index of a NaN where there is one. {_SAYS_DIM}""",
        flops="5*count",
        benchmark=_SMALL,
        perf=_PERF,
    ),
)
