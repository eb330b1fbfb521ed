"""Operators that move elements: select, scatter, fill, permute, choose."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from kerneltruth.tasks.spec import (
    Claim,
    Dim,
    Evidence,
    Output,
    Role,
    Sizes,
    Task,
    Variants,
    nonempty,
    task,
)

_PLANE: dict[str, Role | Dim] = {
    **nonempty(L="batch", M="spatial", N="spatial"),
    "K": "spatial",
}
_SHAPE = Variants("_rank", {3: "L, M, N", 2: "M, N", 1: "N"})
_IN_RANGE = "-_rank <= dim < _rank"
_DIMS = (0, -2, 1)
_PERMUTATIONS = (
    (0,),
    (0, 2, 1),
    (2, 0, 1),
    (-1, 0, 1),
    (1, 0, 2),
    (0, 1),
    (3, 2, 1, 0),
    (0, 2, 3, 1),
)


def _mask(shape: Sizes, M: int, N: int, _mask: str, _rank: int) -> Sizes:
    if _mask == "same":
        return shape
    if _mask == "row":
        return (N,)
    return (1,) if _rank == 1 else (M, 1)


def _index_of_scatter(shape: Sizes, K: int, dim: int, _short: bool, _rank: int) -> Sizes:
    return tuple(
        K if i == dim % _rank else max(n - 1, 1) if _short else n for i, n in enumerate(shape)
    )


def _src_of_scatter(shape: Sizes, K: int, dim: int, _short: bool, _rank: int) -> Sizes:
    longest = K + 1 if _short else K
    return tuple(longest if i == dim % _rank else n for i, n in enumerate(shape))


def _expanded_to(L: int, M: int, N: int, _lead: bool, _kept: bool, _input: str) -> Sizes:
    rows = -1 if _kept and _input in ("column", "full") else M
    columns = -1 if _kept and _input in ("row", "flat", "full") else N
    return (L, rows, columns) if _lead else (rows, columns)


def _other_of_expand(L: int, M: int, N: int, _lead: bool, _other: str) -> Sizes:
    if _other == "full":
        return (L, M, N) if _lead else (M, N)
    return (N,) if _other == "row" else ()


def _index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    places: list[slice | Tensor] = [slice(None)] * input.ndim
    places[dim] = index
    return input[tuple(places)]


def _index_fill(dim: int, x: Tensor, index: Tensor, value: float) -> tuple[Tensor, Tensor]:
    result = x.clone()
    result.transpose(0, dim)[index] = value
    return result, result


def _scattered(evidence: Evidence) -> Iterator[Claim]:
    """Each element is one that the scatter may leave there, whatever order it writes in."""
    dim: int = evidence.scalars["dim"]
    before, index, src = (evidence.inputs[n] for n in ("input", "index", "src"))
    assert before is not None
    assert index is not None
    assert src is not None
    got = evidence.outputs[0].to(torch.float64)
    whole = [i == dim % got.ndim for i in range(got.ndim)]
    corner = tuple(slice(None if w else n) for w, n in zip(whole, index.shape, strict=True))
    written = src[tuple(slice(n) for n in index.shape)].to(torch.float64)
    match = _same(got[corner].gather(dim, index), written).to(torch.float64)
    hit = torch.zeros_like(got).scatter(dim, index, 1.0) > 0
    found = torch.zeros_like(got).scatter_reduce(dim, index, match, "amax") > 0
    right = torch.where(hit, found, _same(got, before.to(torch.float64)))
    yield Claim("elements that are neither a source nor the input's own", float((~right).sum()), 0)


def _same(one: Tensor, other: Tensor) -> Tensor:
    return (one == other) | (one.isnan() & other.isnan())


TASKS: tuple[Task, ...] = (
    task(
        "expand_where(input[*input_shape], target_sizes:=target, cond[*cond_shape]: bool, "
        "other[*other_shape], _lead=False, _kept=False, _input='row', _cond='column', "
        "_other='full')",
        category="Index",
        dims={"L": Dim(symbol="L", role="batch", low=1), "M": "spatial", "N": "spatial"},
        where={
            "input_shape": Variants(
                "_input",
                {"row": "1, N", "column": "M, 1", "flat": "N", "one": "1, 1", "full": "M, N"},
            ),
            "target": _expanded_to,
            "cond_shape": Variants("_cond", {"column": "M, 1", "full": "M, N", "row": "N"}),
            "other_shape": _other_of_expand,
        },
        attributes={
            "_input": ("column", "flat", "one", "full"),
            "_cond": ("full", "row"),
            "_other": ("row", "scalar"),
            "_lead": (True,),
            "_kept": (True,),
        },
        extended={"_kept": (True,)},
        reference=lambda input, target_sizes, cond, other: torch.where(
            cond, input.expand(target_sizes), other
        ),
        description="""The input, expanded to `target_sizes` (a tuple of ints), where cond is True,
            and `other` where it is False. Expanding repeats dims of size 1 and adds dims in front;
            a -1 among the target sizes keeps that dim of the input. The bool cond and other
            broadcast to the expanded shape, which the contiguous result has, in the input's dtype.
            Elements are moved as they are: a NaN that is not chosen leaves no trace.""",
        flops="0",
        benchmark={"L": 1, "M": 32, "N": 128},
        perf=(
            {"L": 1, "M": 256, "N": 4096},
            {"L": 1, "M": 4096, "N": 4096},
            {"L": 1, "M": 8192, "N": 8192},
        ),
    ),
    task(
        "index_fill_(dim=-1, x[*shape], index[K]: index(shape[dim]), value=1.5)",
        category="Index",
        dims=_PLANE,
        where={"shape": _SHAPE},
        attributes={"dim": _DIMS, "value": (0, -3, float("inf"))},
        constraints=(_IN_RANGE,),
        mutates={"x": "True"},
        outputs=(Output(), Output(name="x")),
        reference=_index_fill,
        description="""x with `value` (a number, converted to x's dtype) written wherever the
            position along `dim` is one of the int64 entries of index[K]; all else stays as it is.
            An index may come several times, in any order; K may be 0, which changes nothing. `dim`
            may be negative and x has one, two or three dims. x is written in place, as the name
            says, and the filled tensor is returned: x itself, or a new one.""",
        flops="0",
        bytes="0",
        benchmark={"L": 1, "M": 32, "N": 128, "K": 16},
        perf=(
            {"L": 1, "M": 1024, "N": 1024, "K": 64},
            {"L": 1, "M": 8192, "N": 4096, "K": 512},
            {"L": 1, "M": 16384, "N": 8192, "K": 2048},
        ),
    ),
    task(
        "index_select(input[*shape], dim=0, index[K]: index(shape[dim]))",
        category="Index",
        dims=_PLANE,
        where={"shape": _SHAPE},
        attributes={"dim": (-1, -2, 1)},
        constraints=(_IN_RANGE,),
        reference=_index_select,
        description="""The slices of the input at the int64 positions index[K] along `dim`, in that
            order: the result has the input's shape with K in place of that dim. An index may come
            several times; K may be 0. `dim` may be negative; the input has one, two or three
            dims.""",
        flops="0",
        benchmark={"L": 1, "M": 64, "N": 128, "K": 64},
        perf=(
            {"L": 1, "M": 4096, "N": 512, "K": 1024, "_rank": 2},
            {"L": 1, "M": 65536, "N": 1024, "K": 16384, "_rank": 2},
            {"L": 1, "M": 131072, "N": 1024, "K": 65536, "_rank": 2},
        ),
    ),
    task(
        "masked_select(input[*shape], mask[*mask_shape]: bool, _mask='same', _rank=2)",
        category="Index",
        dims={
            "L": Dim(symbol="L", role="batch", low=1),
            "M": "spatial",
            "N": "spatial",
        },
        where={"shape": _SHAPE, "mask_shape": _mask},
        attributes={"_mask": ("row", "column"), "_rank": (1, 3)},
        extended={"_mask": ("row", "column")},
        reference=lambda input, mask: input[mask.expand(input.shape)],
        description="""The elements of the input where the bool mask is True, in row-major order, as
            a one-dimensional tensor with exactly as many elements as are chosen, which may be none
            or all. The mask has the input's shape or broadcasts to it; the input has one, two or
            three dims. Elements are moved as they are.""",
        flops="0",
        benchmark={"L": 1, "M": 32, "N": 128},
        perf=(
            {"L": 1, "M": 1024, "N": 1024},
            {"L": 1, "M": 4096, "N": 4096},
            {"L": 1, "M": 16384, "N": 8192},
        ),
    ),
    task(
        "permute_copy(input[*shape], dims=(1, 0))",
        category="Index",
        dims={"L": "spatial", "M": "spatial", "N": "spatial", "K": "spatial"},
        where={"shape": lambda L, M, N, K, dims: (L, M, N, K)[: len(dims)]},
        attributes={"dims": _PERMUTATIONS},
        reference=lambda input, dims: input.permute(dims).contiguous(),
        description="""A contiguous copy of the input with its dims in another order: dim i of the
            result is dim dims[i] of the input. `dims` is a permutation of the dims, one to four of
            them, which may be counted from the end (-1 is the last). The result never shares
            memory with the input, also where the order stays as it is.""",
        flops="0",
        benchmark={"L": 64, "M": 64, "N": 1, "K": 1},
        perf=(
            {"L": 1024, "M": 1024, "N": 1, "K": 1},
            {"L": 4096, "M": 8192, "N": 1, "K": 1},
            {"L": 16384, "M": 8192, "N": 1, "K": 1},
        ),
    ),
    task(
        "scatter(input[*shape], dim=-1, index[*index_shape]: index(shape[dim]), src[*src_shape], "
        "_short=False, _rank=3)",
        category="Index",
        dims=_PLANE,
        where={"shape": _SHAPE, "index_shape": _index_of_scatter, "src_shape": _src_of_scatter},
        attributes={"dim": (0, 1, -2), "_short": (True,), "_rank": (2, 1)},
        constraints=(_IN_RANGE,),
        extended={"_short": (True,)},
        outputs=(Output(compare="claims"),),
        claims=_scattered,
        reference=lambda input, dim, index, src: input.scatter(dim, index, src),
        description="""A copy of the input in which, for every position p of `index`, src[p] stands
            where p points with its coordinate along `dim` replaced by index[p]. The int64 index has
            as many dims as the input (one, two or three); along the other dims it is no longer than
            the input, and nowhere longer than src, whose elements beyond it are not used. Where
            several positions point at one place, any of their values is right. The input itself
            stays as it is; `dim` may be negative.""",
        flops="0",
        benchmark={"L": 1, "M": 32, "N": 64, "K": 32},
        perf=(
            {"L": 1, "M": 512, "N": 256, "K": 64},
            {"L": 1, "M": 8192, "N": 4096, "K": 1024},
            {"L": 1, "M": 16384, "N": 8192, "K": 2048},
        ),
    ),
)
