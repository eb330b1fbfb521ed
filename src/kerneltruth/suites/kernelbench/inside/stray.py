"""Collect how far right results deviate from a float64 reference, run after run."""

from __future__ import annotations

import torch


class Stray:
    """The largest deviation of each element of one output; see `oracle.bounds`."""

    def __init__(self, truth: torch.Tensor) -> None:
        self._truth = truth
        self._finite = torch.isfinite(truth)
        self._spread = torch.zeros(truth.shape, dtype=torch.float32, device=truth.device)

    def add(self, result: torch.Tensor, promised: str | None, *, settles: bool) -> None:
        """Take another evaluation of the reference into account.

        Args:
            result: of the same shape; another shape is ignored.
            promised: the dtype to which a result is rounded; None leaves it.
            settles: whether a value of another class here (infinite, NaN) unsettles the element.
        """
        if result.shape != self._truth.shape:
            return
        expected = self._truth
        if promised is not None and result.is_floating_point():
            result = result.to(getattr(torch, promised))
            # An overflow in that dtype is infinite.
            expected = expected.to(result.dtype)
        result = result.to(torch.float64)
        off = (result - self._truth.to(torch.float64)).abs_()
        known = self._finite & torch.isfinite(result)
        off = torch.where(known, off, 0.0).to(torch.float32)
        if settles:
            same = known | (result.isnan() & self._truth.isnan()) | (result == expected)
            off = torch.where(same, off, torch.nan)
        # NaN stays NaN.
        self._spread = torch.maximum(self._spread, off)

    def spread(self) -> torch.Tensor:
        """Return the deviations in float32, NaN if the element is not settled."""
        return self._spread
