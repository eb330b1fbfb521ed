"""Define a change of one rule of quantization.

A wrong kernel that is right under a changed rule, within the same bounds, departs from its task in
that rule. A task lists the changes that kernels are known to make.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kerneltruth.documents.verdict import QuantizationRule
from kerneltruth.tasks.arguments import Output
from kerneltruth.tasks.claims import Claims


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRule:
    """One rule of a quantized task, changed; `Task.under` is the task with it.

    Attributes:
        rule: which rule it is.
        words: the change, as a clause after "if".
        reference: None means the task's own, with its admissible formulations.
        claims: of the changed task; None if its outputs are compared by bounds.
        outputs: None means the task's own.
    """

    rule: QuantizationRule
    words: str
    reference: Callable[..., Any] | None = None
    admissible: tuple[Callable[..., Any], ...] = ()
    claims: Claims | None = None
    outputs: tuple[Output, ...] | None = None
