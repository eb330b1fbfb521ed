"""Cases that ask for the gradient of a result: a task of their own, whose outputs are gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import torch

from kerneltruth.cases.values import FLOAT_KINDS
from kerneltruth.documents.case import Case
from kerneltruth.runner.gradients import gradients
from kerneltruth.tasks.spec import Output, Task, TensorSpec


def judged_as(task: Task, case: Case) -> Task:
    """The task whose outputs a case judges: the case's own, or that of its gradients."""
    if not task.wants_gradients(case.settings):
        return task
    specs = differentiated(task, case)
    return replace(
        task,
        # A gradient has its input's dtype, whichever the caller requests for the result.
        outputs=tuple(
            Output(name=f"gradient of {spec.name}", dtype=spec.dtype(case.dtype)) for spec in specs
        ),
        reference=_gradient_of(task.reference, specs),
        with_spread=None,
        admissible=tuple(_gradient_of(formula, specs) for formula in task.admissible),
        tf32=tuple(_gradient_of(formula, specs) for formula in task.tf32),
        narrowed={
            dtype: tuple(_gradient_of(formula, specs) for formula in formulas)
            for dtype, formulas in task.narrowed.items()
        },
        claims=None,
        random=False,
    )


def differentiated(task: Task, case: Case) -> tuple[TensorSpec, ...]:
    """The inputs whose gradients are asked for: all of real numbers that are there."""
    return tuple(s for s in task.tensors if s.kind in FLOAT_KINDS and s.name not in case.absent)


def _gradient_of(formula: Callable[..., Any], specs: Sequence[TensorSpec]) -> Callable[..., Any]:
    """A formula for the gradients of another one's first output."""

    @wraps(formula)
    def gradient(**arguments: Any) -> tuple[torch.Tensor, ...]:
        given: dict[str, Any] = {
            n: list(a) if isinstance(a, list) else a for n, a in arguments.items()
        }
        leaves = []
        taken: dict[str, int] = {}
        for spec in specs:
            if spec.member_of is None:
                leaf = given[spec.name].detach().requires_grad_()
                given[spec.name] = leaf
            else:
                at = taken.get(spec.member_of, 0)
                taken[spec.member_of] = at + 1
                leaf = given[spec.member_of][at].detach().requires_grad_()
                given[spec.member_of][at] = leaf
            leaves.append(leaf)
        with torch.enable_grad():
            result = formula(**given)
            first = result[0] if isinstance(result, tuple | list) else result
            return tuple(g.detach() for g in gradients(first, leaves))

    return gradient
