"""Run entries that make an optimizer: its steps show what it computes.

The gradients of a parameter are a separate argument, named after it. The entry never sees them: it
receives its parameters and options, and the optimizer that it returns takes one step per gradient.
The parameters, written in place, are the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kerneltruth.runner.child.binding import Offered

GRADIENTS_OF = "_gradients_of_"


def set_aside(
    arguments: Sequence[Offered],
) -> tuple[Sequence[Offered], dict[str, torch.Tensor | None]]:
    """Split arguments into the entry's own and gradients, by name of their parameter."""
    gradients = {
        a.name.removeprefix(GRADIENTS_OF): a.value
        for a in arguments
        if a.name.startswith(GRADIENTS_OF)
    }
    if not gradients:
        return arguments, gradients
    return [a for a in arguments if not a.name.startswith(GRADIENTS_OF)], gradients


def parameters(
    arguments: Sequence[Offered], gradients: Mapping[str, torch.Tensor | None]
) -> dict[str, torch.Tensor]:
    """Return the parameters by name, prepared to have gradients."""
    return {a.name: a.value.requires_grad_() for a in arguments if a.name in gradients}


def stepped(
    returned: Any,
    owners: Mapping[str, torch.Tensor],
    gradients: Mapping[str, torch.Tensor | None],
) -> Any:
    """Make the optimizer take a step for each gradient; return anything else unchanged.

    A parameter without gradients has none in any step.
    """
    if not callable(getattr(returned, "step", None)):
        return returned
    known = {n: g for n, g in gradients.items() if g is not None and n in owners}
    for step in range(max((len(g) for g in known.values()), default=0)):
        for name, each in known.items():
            owners[name].grad = each[step].clone()
        returned.step()
    return None
