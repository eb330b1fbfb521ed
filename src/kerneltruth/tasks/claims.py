"""A task's claims about a result, if its right answer is not unique."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch


class Bounded(Protocol):
    """Returns bounds for formulas other than the reference, computed as the judge's own."""

    def __call__(
        self, formula: Callable[..., torch.Tensor], settings: Mapping[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the float64 result on the inputs, and the error allowed per element.

        The error is infinite where right results differ by more than rounding.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """The evidence that claims judge.

    Attributes:
        inputs: float64, or in their own integer dtype; None where absent.
        scalars: attributes, hidden and derived ones too.
        outputs: as returned; number, shapes and dtypes are those of the reference.
        reference: what the reference gives, in float64, complex128 or an integer dtype.
        dtype: the case's dtype.
        eps: spacing of that dtype at 1; 0 for integers.
        tf32: whether the policy admits TF32 in products of float32 factors.
        bounded: returns a formula's result with these settings, and the error of a right kernel.
    """

    inputs: Mapping[str, torch.Tensor | None]
    scalars: Mapping[str, Any]
    outputs: tuple[torch.Tensor, ...]
    reference: tuple[torch.Tensor, ...]
    dtype: str
    eps: float
    tf32: bool = True
    bounded: Bounded | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A number that must not exceed its limit; NaN breaks the claim.

    `where` marks the elements of the first output that break a claim on each of them.
    """

    name: str
    value: float
    limit: float
    where: torch.Tensor | None = field(default=None, compare=False, repr=False)

    @property
    def holds(self) -> bool:
        """Return whether the value is within the limit."""
        return bool(float(self.value) <= self.limit)


Claims = Callable[[Evidence], Iterable[Claim]]
