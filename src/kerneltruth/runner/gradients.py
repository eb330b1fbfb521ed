"""Compute gradients of a result by the inputs of a call, in the child and for the judge."""

from __future__ import annotations

from collections.abc import Sequence

import torch

# The weights of a result's elements repeat after this many; all are exact in every dtype.
_PERIOD = 7


class NoGradient(RuntimeError):
    """The result does not require a gradient, though some of its inputs do."""


def weights(result: torch.Tensor) -> torch.Tensor:
    """Return the gradient passed in at the result: 1/8 to 7/8 in turn, in row-major order."""
    places = torch.arange(result.numel(), device=result.device)
    return ((places % _PERIOD + 1) / 8).to(result.dtype).reshape(result.shape)


def gradients(result: torch.Tensor, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the gradient of each input; zeros if the result does not depend on it.

    Raises:
        NoGradient: the result is not connected to any input.
    """
    if not result.requires_grad:
        raise NoGradient("the result does not require grad, though the inputs do")
    found = torch.autograd.grad(result, list(inputs), weights(result), allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]
