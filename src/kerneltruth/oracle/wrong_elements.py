"""The rule by which an element of a result is wrong.

Non-finite values are compared by parity first, and kept out of arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kerneltruth.oracle.dtypes import NAMES, all_finite, largest


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """What the rule finds of each element; `finite` is None where all elements are."""

    wrong: torch.Tensor
    nan_parity: torch.Tensor
    inf_parity: torch.Tensor
    finite: torch.Tensor | None
    error: torch.Tensor


def mark(
    output: torch.Tensor, reference: torch.Tensor, bound: torch.Tensor, rounded: torch.Tensor
) -> Marks:
    """Mark what is wrong in a floating-point output, beside its float64 reference.

    A value is wrong if its error exceeds the bound, or if only one side is NaN, or infinite with
    that sign. A finite value beyond the output dtype's range counts as infinite; the bound is
    infinite where the element is not settled.
    """
    got = output.to(torch.float64)
    want = rounded.to(torch.float64)
    error = (got - reference).abs()
    if all_finite(error) and all_finite(want.abs()):
        none = torch.zeros(error.shape, dtype=torch.bool)
        return Marks(error > bound, none, none, None, error)
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
    return Marks(wrong, nan_parity, inf_parity, finite, error)


def _at_the_overflow_edge(
    got: torch.Tensor, reference: torch.Tensor, bound: torch.Tensor, dtype: str
) -> torch.Tensor:
    """Elements so near the largest finite value that rounding decides between it and infinity."""
    top = largest(dtype)
    near = torch.isfinite(reference) & (reference.abs() + bound >= top)
    near &= reference.abs() - bound <= top * (1 + 2.0**-7)
    return near & (torch.sign(got) == torch.sign(reference))


def mark_exact(output: torch.Tensor, reference: torch.Tensor, slack: torch.Tensor | None) -> Marks:
    """Mark what is wrong in an integer or bool output.

    `slack` is the distance that admissible results show; None is none.
    """
    error = (output.to(torch.float64) - reference.to(torch.float64)).abs()
    wrong = error > (0 if slack is None else slack)
    none = torch.zeros_like(wrong)
    return Marks(wrong, none, none, None, error)


def rejects(
    output: torch.Tensor, reference: torch.Tensor, bound: torch.Tensor, *, rounded: torch.Tensor
) -> bool:
    """Whether `mark` would find anything wrong."""
    error = (output.to(torch.float64) - reference).abs()
    # A finite error says that both sides are finite; then only the rounding may have overflowed.
    over = (error > bound) & (error < torch.inf) & (rounded.to(torch.float64).abs() < torch.inf)
    return bool(over.any()) or bool(mark(output, reference, bound, rounded).wrong.any())


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


def rejects_exact(
    output: torch.Tensor, reference: torch.Tensor, slack: torch.Tensor | None
) -> bool:
    """Whether `mark_exact` would find anything wrong."""
    difference = (output.to(torch.float64) - reference.to(torch.float64)).abs()
    return bool((difference > (0 if slack is None else slack)).any())
