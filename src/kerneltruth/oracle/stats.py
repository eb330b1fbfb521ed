"""Error statistics. Non-finite values are compared by parity first, and kept out of arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from kerneltruth.oracle.attempt import ErrorStats
from kerneltruth.oracle.dtypes import NAMES, all_finite, largest, ulp_distance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Difference:
    """Elementwise comparison of one output.

    Attributes:
        wrong: elements that break the bound or the parity of non-finite values.
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
) -> Difference:
    """Compare a floating-point output with its float64 reference.

    Args:
        output: in the output dtype.
        reference: float64; a finite value beyond the output dtype's range counts as infinite.
        bound: float64 error allowed per element; infinite where the element is not settled.
        rounded: the reference rounded to the output dtype.
    """
    marks = _mark(output, reference, bound, rounded)
    return Difference(
        wrong=marks.wrong,
        nan_parity=marks.nan_parity,
        inf_parity=marks.inf_parity,
        stats=_statistics(output, rounded, reference, bound, marks),
    )


def rejects(
    output: torch.Tensor, reference: torch.Tensor, bound: torch.Tensor, *, rounded: torch.Tensor
) -> bool:
    """Whether `compare` would find anything wrong, without the statistics."""
    error = (output.to(torch.float64) - reference).abs()
    # A finite error says that both sides are finite; then only the rounding may have overflowed.
    over = (error > bound) & (error < torch.inf) & (rounded.to(torch.float64).abs() < torch.inf)
    return bool(over.any()) or bool(_mark(output, reference, bound, rounded).wrong.any())


def each_rejected(
    outputs: Sequence[torch.Tensor],
    reference: torch.Tensor,
    bound: torch.Tensor,
    *,
    rounded: torch.Tensor,
) -> bool:
    """Whether each of some outputs exceeds its bound somewhere; if not, ask `rejects` of each."""
    error = (torch.stack(tuple(outputs)).to(torch.float64) - reference).abs()
    over = (error > bound) & (error < torch.inf) & (rounded.to(torch.float64).abs() < torch.inf)
    return bool(over.reshape(len(over), -1).any(1).all())


@dataclass(frozen=True, slots=True, eq=False)
class _Marks:
    """What `compare` finds of each element; `finite` is None where all elements are."""

    wrong: torch.Tensor
    nan_parity: torch.Tensor
    inf_parity: torch.Tensor
    finite: torch.Tensor | None
    error: torch.Tensor


def _mark(
    output: torch.Tensor, reference: torch.Tensor, bound: torch.Tensor, rounded: torch.Tensor
) -> _Marks:
    got = output.to(torch.float64)
    want = rounded.to(torch.float64)
    error = (got - reference).abs()
    if all_finite(error) and all_finite(want.abs()):
        none = torch.zeros(error.shape, dtype=torch.bool)
        return _Marks(error > bound, none, none, None, error)
    finite = torch.isfinite(got) & torch.isfinite(want) & torch.isfinite(reference)
    unsettled = torch.isinf(bound)
    nan_parity = (torch.isnan(got) != torch.isnan(want)) & ~unsettled
    inf_parity = (torch.isinf(got) | torch.isinf(want)) & (got != want) & ~nan_parity & ~unsettled
    inf_parity &= ~(torch.isnan(got) & torch.isnan(want))
    if bool(inf_parity.any()):
        inf_parity &= ~_at_the_overflow_edge(got, reference, bound, NAMES[output.dtype])
    # An infinite bound stays infinite, so an unsettled element exceeds nothing.
    error = torch.where(finite, error, torch.zeros_like(reference))
    wrong = (error > bound) | nan_parity | inf_parity
    return _Marks(wrong, nan_parity, inf_parity, finite, error)


def _at_the_overflow_edge(
    got: torch.Tensor, reference: torch.Tensor, bound: torch.Tensor, dtype: str
) -> torch.Tensor:
    """Elements so near the largest finite value that rounding decides between it and infinity."""
    top = largest(dtype)
    near = torch.isfinite(reference) & (reference.abs() + bound >= top)
    near &= reference.abs() - bound <= top * (1 + 2.0**-7)
    return near & (torch.sign(got) == torch.sign(reference))


def _statistics(
    output: torch.Tensor,
    rounded: torch.Tensor,
    reference: torch.Tensor,
    bound: torch.Tensor,
    marks: _Marks,
) -> ErrorStats:
    finite = marks.finite
    exceeding = int(marks.wrong.sum())
    worst = _worst(marks.error, bound, marks.wrong)
    if output.numel() == 0 or (finite is not None and not bool(finite.any())):
        return ErrorStats(count=output.numel(), num_exceeding=exceeding, worst_index=worst)

    def chosen(values: torch.Tensor) -> torch.Tensor:
        return values.reshape(-1) if finite is None else values[finite]

    absolute = chosen(marks.error)
    relative = _relative(absolute, chosen(reference).abs())
    ulps = ulp_distance(chosen(output), chosen(rounded))
    allowed = chosen(bound)
    measured = (allowed > 0) & (allowed < torch.inf)
    ratio = float(torch.where(measured, absolute / allowed, -1.0).amax())
    # numpy sorts several times as fast as torch does.
    ordered = np.sort(absolute.numpy())
    last = ordered.size - 1

    def percentile(p: int) -> float:
        return float(ordered[(last * p + 50) // 100])

    return ErrorStats(
        count=output.numel(),
        num_exceeding=exceeding,
        max_abs=float(ordered[-1]),
        mean_abs=float(absolute.mean()),
        p50_abs=percentile(50),
        p90_abs=percentile(90),
        p99_abs=percentile(99),
        max_rel=float(relative.amax()) if relative.numel() else None,
        mean_rel=float(relative.mean()) if relative.numel() else None,
        max_ulp=float(ulps.amax()),
        mean_ulp=float(ulps.mean()),
        worst_index=worst,
        max_bound_ratio=None if ratio < 0 else ratio,
    )


def _relative(absolute: torch.Tensor, magnitude: torch.Tensor) -> torch.Tensor:
    """The error over the magnitude, where that is not 0."""
    if float(magnitude.amin()) > 0:
        return absolute / magnitude
    nonzero = magnitude > 0
    return absolute[nonzero] / magnitude[nonzero]


def _worst(error: torch.Tensor, bound: torch.Tensor, wrong: torch.Tensor) -> tuple[int, ...] | None:
    """Index of the element furthest over its bound; of the first parity break if there is one."""
    if error.numel() == 0:
        return None
    over = torch.where(torch.isinf(bound), torch.zeros_like(error), error - bound)
    parity_only = wrong & (error <= bound)
    over = torch.where(parity_only, torch.full_like(over, torch.inf), over)
    flat = int(over.reshape(-1).argmax())
    index = []
    for size in reversed(error.shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def rejects_exact(
    output: torch.Tensor, reference: torch.Tensor, slack: torch.Tensor | None
) -> bool:
    """Whether `compare_exact` would find anything wrong, without the statistics."""
    difference = (output.to(torch.float64) - reference.to(torch.float64)).abs()
    return bool((difference > (0 if slack is None else slack)).any())


def compare_exact(
    output: torch.Tensor, reference: torch.Tensor, slack: torch.Tensor | None
) -> Difference:
    """Compare an integer or bool output; `slack` is the distance that admissible ones show."""
    difference = (output.to(torch.float64) - reference.to(torch.float64)).abs()
    allowed = torch.zeros_like(difference) if slack is None else slack
    wrong = difference > allowed
    none = torch.zeros_like(wrong)
    stats = ErrorStats(
        count=output.numel(),
        num_exceeding=int(wrong.sum()),
        max_abs=float(difference.amax()) if difference.numel() else None,
        mean_abs=float(difference.mean()) if difference.numel() else None,
        worst_index=_worst(difference, allowed, wrong),
    )
    return Difference(wrong=wrong, nan_parity=none, inf_parity=none, stats=stats)
