"""Error statistics of an output; `wrong_elements` has the rule by which its elements are wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from kerneltruth.documents.records import ErrorStats
from kerneltruth.oracle.dtypes import ulp_distance
from kerneltruth.oracle.wrong_elements import Marks, mark, mark_exact

# Larger outputs are compared in parts of this many elements.
PART = 2**17


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Difference:
    """Elementwise comparison of one output.

    Attributes:
        nan_parity: elements where exactly one side is NaN.
        inf_parity: elements where the infinities differ.
        stats: error statistics over the elements finite on both sides.
    """

    wrong: torch.Tensor
    nan_parity: torch.Tensor
    inf_parity: torch.Tensor
    stats: ErrorStats


def compare(
    output: torch.Tensor,
    reference: torch.Tensor,
    bound: torch.Tensor,
    *,
    rounded: torch.Tensor,
    part: int = PART,
) -> Difference:
    """Compare a floating-point output with its float64 reference.

    A finite value beyond the output dtype's range counts as infinite; the bound is infinite where
    the element is not settled.
    """
    if output.numel() > part:
        return _in_parts(output, reference, bound, rounded, part)
    marks = mark(output, reference, bound, rounded)
    measured = _measured(output, rounded, reference, bound, marks)
    return Difference(
        wrong=marks.wrong,
        nan_parity=marks.nan_parity,
        inf_parity=marks.inf_parity,
        stats=_statistics([measured], output.shape),
    )


def _in_parts(
    output: torch.Tensor,
    reference: torch.Tensor,
    bound: torch.Tensor,
    rounded: torch.Tensor,
    part: int,
) -> Difference:
    """The comparison of many elements, whose temporaries stay in the processor's caches."""
    flat = [t.expand(output.shape).reshape(-1) for t in (output, reference, bound, rounded)]
    found: list[Marks] = []
    measured: list[_Measured] = []
    for got, wanted, allowed, nearest in zip(*(torch.split(t, part) for t in flat), strict=True):
        marks = mark(got, wanted, allowed, nearest)
        found.append(replace(marks, finite=None, error=marks.error[:0]))
        measured.append(_measured(got, nearest, wanted, allowed, marks))

    def whole(marks: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat(marks).reshape(output.shape)

    return Difference(
        wrong=whole([m.wrong for m in found]),
        nan_parity=whole([m.nan_parity for m in found]),
        inf_parity=whole([m.inf_parity for m in found]),
        stats=_statistics(measured, output.shape),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Measured:
    """What is known of one part of an output; `errors` are those of elements finite on both sides.

    Sums are of the absolute, the relative and the ulp error; `over` is how far the worst element is
    over its bound, at the index `worst` of the part.
    """

    count: int
    exceeding: int
    errors: torch.Tensor
    relatives: int = 0
    sums: tuple[float, float, float] = (0.0, 0.0, 0.0)
    max_rel: float = -math.inf
    max_ulp: float = -math.inf
    ratio: float = -1.0
    over: float = -math.inf
    worst: int = 0


def _measured(
    output: torch.Tensor,
    rounded: torch.Tensor,
    reference: torch.Tensor,
    bound: torch.Tensor,
    marks: Marks,
) -> _Measured:
    finite = marks.finite
    exceeding = int(marks.wrong.sum())
    over, worst = _worst(marks.error, bound, marks.wrong, exceeding)
    if output.numel() == 0 or (finite is not None and not bool(finite.any())):
        return _Measured(
            count=output.numel(),
            exceeding=exceeding,
            errors=marks.error.reshape(-1)[:0],
            over=over,
            worst=worst,
        )

    def chosen(values: torch.Tensor) -> torch.Tensor:
        return values.reshape(-1) if finite is None else values[finite]

    absolute = chosen(marks.error)
    relative = _relative(absolute, chosen(reference).abs())
    ulps = ulp_distance(chosen(output), chosen(rounded))
    allowed = chosen(bound)
    measured = (allowed > 0) & (allowed < torch.inf)
    return _Measured(
        count=output.numel(),
        exceeding=exceeding,
        errors=absolute,
        relatives=relative.numel(),
        sums=(float(absolute.sum()), float(relative.sum()), float(ulps.sum())),
        max_rel=float(relative.amax()) if relative.numel() else -math.inf,
        max_ulp=float(ulps.amax()),
        ratio=float(torch.where(measured, absolute / allowed, -1.0).amax()),
        over=over,
        worst=worst,
    )


def _statistics(parts: Sequence[_Measured], shape: Sequence[int]) -> ErrorStats:
    count, exceeding = sum(p.count for p in parts), sum(p.exceeding for p in parts)
    worst = _index_of(parts, shape)
    errors = np.concatenate([p.errors.numpy() for p in parts])
    if not errors.size:
        return ErrorStats(count=count, num_exceeding=exceeding, worst_index=worst)
    last = errors.size - 1
    places = {p: (last * p + 50) // 100 for p in (50, 90, 99, 100)}
    # Four of its places are needed: this takes a third of the time of sorting all of them.
    errors.partition(sorted(places.values()))
    absolute, relative, ulps = (sum(p.sums[i] for p in parts) for i in range(3))
    relatives = sum(p.relatives for p in parts)
    ratio = max(p.ratio for p in parts)
    return ErrorStats(
        count=count,
        num_exceeding=exceeding,
        max_abs=float(errors[places[100]]),
        mean_abs=absolute / errors.size,
        p50_abs=float(errors[places[50]]),
        p90_abs=float(errors[places[90]]),
        p99_abs=float(errors[places[99]]),
        max_rel=max(p.max_rel for p in parts) if relatives else None,
        mean_rel=relative / relatives if relatives else None,
        max_ulp=max(p.max_ulp for p in parts),
        mean_ulp=ulps / errors.size,
        worst_index=worst,
        max_bound_ratio=None if ratio < 0 else ratio,
    )


def _relative(absolute: torch.Tensor, magnitude: torch.Tensor) -> torch.Tensor:
    if float(magnitude.amin()) > 0:
        return absolute / magnitude
    nonzero = magnitude > 0
    return absolute[nonzero] / magnitude[nonzero]


def _worst(
    error: torch.Tensor, bound: torch.Tensor, wrong: torch.Tensor, exceeding: int
) -> tuple[float, int]:
    """How far the worst element is over its bound, and where; infinite for a parity break."""
    if error.numel() == 0:
        return -math.inf, 0
    over = (error - bound).masked_fill_(torch.isinf(bound), 0.0)
    if exceeding:
        parity_only = wrong & (error <= bound)
        over.masked_fill_(parity_only, torch.inf)
    over = over.reshape(-1)
    at = int(over.argmax())
    return float(over[at]), at


def _index_of(parts: Sequence[_Measured], shape: Sequence[int]) -> tuple[int, ...] | None:
    """Index of the element furthest over its bound; of the first parity break if there is one."""
    if not any(p.count for p in parts):
        return None
    most = max(range(len(parts)), key=lambda i: parts[i].over)
    flat = sum(p.count for p in parts[:most]) + parts[most].worst
    return tuple(map(int, np.unravel_index(flat, tuple(shape))))


def compare_exact(
    output: torch.Tensor, reference: torch.Tensor, slack: torch.Tensor | None
) -> Difference:
    """Compare an integer or bool output; `slack` is the distance that admissible ones show."""
    marks = mark_exact(output, reference, slack)
    wrong, difference = marks.wrong, marks.error
    allowed = torch.zeros_like(difference) if slack is None else slack
    exceeding = int(wrong.sum())
    over, at = _worst(difference, allowed, wrong, exceeding)
    part = _Measured(
        count=output.numel(),
        exceeding=exceeding,
        errors=difference.reshape(-1)[:0],
        over=over,
        worst=at,
    )
    stats = ErrorStats(
        count=output.numel(),
        num_exceeding=exceeding,
        max_abs=float(difference.amax()) if difference.numel() else None,
        mean_abs=float(difference.mean()) if difference.numel() else None,
        worst_index=_index_of([part], output.shape),
    )
    return Difference(
        wrong=wrong, nan_parity=marks.nan_parity, inf_parity=marks.inf_parity, stats=stats
    )
