"""Make a worked example for a prompt: a tiny input of a task, and the reference's result.

The input comes from a random stream that no case of the judge shares, with at most a few elements;
attributes have their defaults.
"""

from __future__ import annotations

from itertools import chain, product
from math import prod
from typing import Any

import torch
from msgspec.structs import replace

from kerneltruth.cases.materialize import Inputs, benchmark_case, materialize
from kerneltruth.cases.philox import derive
from kerneltruth.documents.case import Case
from kerneltruth.generate.prompts import Prompts
from kerneltruth.oracle.reference import outputs_of, quietly
from kerneltruth.tasks.model import Task

# The most numbers of one example, inputs and outputs together.
MOST_NUMBERS = 96
# Distinct sizes first, so that the dims can be told apart.
_DISTINCT = (2, 3, 4, 5)
_SIZES = (3, 2, 4, 1, 6, 8)


def example_of(task: Task, prompts: Prompts) -> str:
    """Return an example in words; empty if the task has none that fits a prompt.

    Random operators and operators with several right results have none, nor do tasks whose
    references run in a child.
    """
    if task.foreign or task.random or task.claims is not None:
        return ""
    case = _small_case(task)
    if case is None:
        return ""
    inputs = materialize(task, case)
    outputs = _outputs(task, inputs)
    tensors = [t for t in (*inputs.tensors.values(), *outputs) if t is not None]
    if not outputs or sum(t.numel() for t in tensors) > MOST_NUMBERS:
        return ""
    names = [o.name for o in task.promised_outputs(inputs.scalars, inputs.tensors)]
    return prompts.fill(
        "example",
        case=", ".join(f"{s}={n}" for s, n in case.dims) + f" and dtype {case.dtype}",
        inputs="\n".join(f"    {n} = {shown(v)}" for n, v in inputs if not n.startswith("_")),
        outputs="\n".join(f"    {n} = {shown(t)}" for n, t in zip(names, outputs, strict=False)),
    )


def _small_case(task: Task) -> Case | None:
    base = benchmark_case(task, 0, task.dtypes[0])
    base = replace(base, seed=derive(0, task.key, "example of a prompt"), strategy="example")
    count = len(base.dims)
    others = product(_SIZES, repeat=count) if count <= len(_DISTINCT) else ()
    for sizes in chain([_DISTINCT[:count]] if count <= len(_DISTINCT) else [], others):
        case = base.with_dims(**dict(zip((s for s, _ in base.dims), sizes, strict=True)))
        if not task.allows(case.sizes, case.settings):
            continue
        scope = task.scalars(case.sizes, case.settings)
        shapes = [task.shape(spec, case.sizes, scope) for spec in task.tensors]
        if sum(prod(shape) for shape in shapes) <= MOST_NUMBERS // 2:
            return case
    return None


def _outputs(task: Task, inputs: Inputs) -> list[torch.Tensor]:
    own = {n: None if t is None else t.clone() for n, t in inputs.tensors.items()}
    try:
        with quietly():
            return list(outputs_of(task, own, inputs.scalars))
    except (RuntimeError, ValueError, IndexError, TypeError):
        return []


def shown(value: Any) -> str:
    """Format an argument for a prompt, numbers with four digits."""
    if isinstance(value, list):
        return "[" + ", ".join(shown(v) for v in value) + "]"
    return _numbers(value.tolist()) if isinstance(value, torch.Tensor) else repr(value)


def _numbers(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_numbers(v) for v in value) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
