"""Claims: what outputs must satisfy where the right answer of a task is not unique."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import torch

from kerneltruth.cases.materialize import Inputs
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.dtypes import epsilon, is_float
from kerneltruth.oracle.expectation import Expectation, ExpectedOutput, expected_outputs
from kerneltruth.oracle.reference import quietly, widened
from kerneltruth.oracle.right_results import all_right_results, few_right_results
from kerneltruth.tasks.arguments import PARTS
from kerneltruth.tasks.model import OUT
from kerneltruth.tasks.spec import Claim, Evidence, Output, Task

_COMPUTED = "the claims can be computed"


def broken_claims(
    task: Task,
    expectation: Expectation,
    outputs: tuple[torch.Tensor, ...],
    inputs: Mapping[str, torch.Tensor | None],
    *,
    most: int | None = None,
) -> tuple[Claim, ...]:
    """The claims of the task that the outputs break, at most `most` of them.

    Complex outputs and references come as real and imaginary parts (see `reference.real_parts`).

    `inputs` are the case's, where the outputs lie.
    """
    if task.claims is None:
        return ()
    evidence = evidence_of(task, expectation, outputs, inputs)
    broken: list[Claim] = []
    try:
        with quietly():
            for claim in islice((c for c in task.claims(evidence) if not c.holds), most):
                broken.append(claim)
    except (RuntimeError, ValueError, IndexError, ArithmeticError) as error:
        # A claim cannot even be computed on some outputs, such as NaN.
        line = f"{type(error).__name__}: {error}".splitlines()[0]
        broken = broken or [Claim(f"{_COMPUTED} ({line})", math.nan, 0.0)]
    return tuple(broken)


def evidence_of(
    task: Task,
    expectation: Expectation,
    outputs: tuple[torch.Tensor, ...],
    inputs: Mapping[str, torch.Tensor | None],
) -> Evidence:
    """The evidence for the task's claims; see `broken_claims`."""
    case, expected = expectation.case, expectation.outputs
    parts = PARTS.get(case.dtype, case.dtype)
    wide = {n: None if t is None else widened(t, torch.float64) for n, t in inputs.items()}
    references = tuple(want.reference for want in expected)
    return Evidence(
        inputs={n: t for n, t in wide.items() if n != OUT},
        scalars=dict(expectation.inputs.scalars),
        outputs=_whole(expected, outputs, case.dtype),
        reference=_whole(expected, references, case.dtype),
        dtype=parts,
        eps=epsilon(parts) if is_float(parts) else 0.0,
        tf32=expectation.tf32,
        bounded=partial(_bounded, task, expectation, inputs),
    )


def _bounded(
    task: Task,
    expectation: Expectation,
    inputs: Mapping[str, torch.Tensor | None],
    formula: Callable[..., torch.Tensor],
    settings: Mapping[str, Any],
) -> tuple[torch.Tensor, torch.Tensor]:
    """The result of another formula on the inputs of a case; see `tasks.claims.Bounded`."""
    names = tuple(inspect.signature(formula).parameters)

    def named(**given: Any) -> torch.Tensor:
        return formula(**{n: given[n] for n in names})

    case, (want, *_) = expectation.case, expectation.outputs
    specs = (Output(name=want.spec.name),)
    other = replace(task, reference=named, outputs=specs, claims=None, admissible=(), tf32=())
    given = Inputs(
        order=expectation.inputs.order,
        tensors=dict(inputs),
        scalars=expectation.inputs.scalars | dict(settings),
    )
    if expectation.timed_on is None:
        made = all_right_results(other, case, given, bounded=True, tf32=expectation.tf32)
    else:
        device = expectation.timed_on
        made = few_right_results(other, case, given, bounded=True, device=device)
    # One evaluation may keep an infinite or NaN element that another drops.
    shown = tuple(replace(i, settles=True) for i in made.implementations)
    made = replace(made, implementations=shown)
    (result,) = expected_outputs(other, case, specs, made, Policy(tf32=expectation.tf32))
    assert result.bound is not None
    return result.reference, result.bound


def cannot_be_computed(claim: Claim) -> bool:
    """Whether the claim stands for claims that raised an error."""
    return claim.name.startswith(_COMPUTED)


def claims_in_words(claims: Sequence[Claim]) -> str:
    """The broken claims in words."""
    return "; ".join(
        f"{c.name}: {float(c.value):.3g}, where at most {c.limit:.3g} is right" for c in claims
    )


def _whole(
    expected: Sequence[ExpectedOutput], tensors: Sequence[torch.Tensor], working: str
) -> tuple[torch.Tensor, ...]:
    """Outputs, with complex ones assembled from their parts."""
    return tuple(
        _complex(t) if want.spec.dtype_at(working).startswith("complex") else t
        for want, t in zip(expected, tensors, strict=False)
    )


def _complex(parts: torch.Tensor) -> torch.Tensor:
    wide = parts if parts.dtype in (torch.float32, torch.float64) else parts.to(torch.float64)
    return torch.view_as_complex(wide.contiguous())
