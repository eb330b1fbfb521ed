"""A reference that computes a result together with what right results may deviate from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class WithSpread(Protocol):
    """A reference for large inputs that computes all parts of a bound at once."""

    def __call__(
        self,
        given: Mapping[str, Any],
        *,
        working: str,
        promised: Sequence[str],
        tf32: bool,
        beside: bool = False,
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        """Return the outputs in float64, and how far right results deviate from each.

        The deviation is NaN where an element is not settled. Returns None if separate runs will do.

        Args:
            beside: whether it is needed in addition to separate runs, for what they do not show.
            given: tensors, in the dtype of the case, and scalars by name.
            working: the dtype of the case.
            promised: the dtype of each output.
            tf32: whether products may take factors in TF32.
        """
