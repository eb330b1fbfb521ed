"""Which of a task's shapes are timed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kerneltruth.cases.materialize import benchmark_case
from kerneltruth.clock.roofline.traffic import output_shapes
from kerneltruth.documents.case import Case, setting_text
from kerneltruth.tasks.spec import Task

# Elements of all inputs together, and of all outputs: with more, a shape takes too long to prepare
# and to grade.
MOST_ELEMENTS = 2**25


def timed_cases(task: Task, *, dtype: str | None = None, seed: int = 0) -> tuple[Case, ...]:
    """Return the task's shapes to time, small to large; by default its benchmark's shape."""
    base = benchmark_case(task, seed, dtype or task.dtypes[0])
    found = [_timed_case(task, base, shape) for shape in task.perf]
    return tuple(case for case in found if case is not None) or (base,)


def left_out(task: Task, *, dtype: str | None = None) -> tuple[str, ...]:
    """Shapes of the task that are not timed, as `M=65536 N=65536`: most are too large."""
    base = benchmark_case(task, 0, dtype or task.dtypes[0])
    return tuple(
        " ".join(setting_text(name, value) for name, value in shape.items())
        for shape in task.perf
        if _timed_case(task, base, shape) is None
    )


def _timed_case(task: Task, base: Case, shape: Mapping[str, Any]) -> Case | None:
    """Return the case of a shape; None if it is too large, or not one of this dtype."""
    # A task without dims names its shapes by an attribute.
    settings = base.settings
    forms = settings | {n: v for n, v in shape.items() if n in settings}
    fits = sum(math.prod(task.shape(spec, shape, forms)) for spec in task.tensors) <= MOST_ELEMENTS
    if not fits or not task.allows(shape, forms, to_time=True):
        return None
    dims = tuple((d.symbol, shape[d.symbol]) for d in task.dims)
    case = replace(base, dims=dims, attributes=tuple(forms.items()))
    outputs = output_shapes(task, case) or ()
    return case if sum(map(math.prod, outputs)) <= MOST_ELEMENTS else None
