"""Find attributes and dims of a task that no case's result depends on."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from kerneltruth.cases.materialize import benchmark_case, materialize
from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import Case
from kerneltruth.oracle.reference import reference
from kerneltruth.tasks.model import CALL, DTYPE
from kerneltruth.tasks.spec import INDEX_KINDS, Task, TensorSpec, evaluate

_CASES = 40
# Channels come in groups, and sizes in factors of 2 and 3.
_STEPS = (1, 2, 3, 4, 6, 8, 9)
_REFUSALS = (RuntimeError, ValueError, IndexError, TypeError, ArithmeticError)

Result = tuple[torch.Tensor, ...]


def idle_attributes(task: Task, *, cases: int = _CASES) -> Iterator[str]:
    """Return the attributes that change no result in any of these cases."""
    varied = (a for a in task.attributes if len(a.values) > 1 and a.name not in (CALL, DTYPE))
    pending = {a.name: a.values for a in varied}
    for case in _some(task, cases):
        usual = _result(task, case) if pending else None
        if usual is None:
            continue
        for name, values in list(pending.items()):
            others = (case.with_attributes(**{name: v}) for v in values)
            results = (_result(task, other) for other in others if other != case)
            if any(r is not None and not _equal(r, usual) for r in results):
                del pending[name]
    yield from pending


def idle_dims(task: Task, *, cases: int = _CASES) -> Iterator[str]:
    """Return the dims whose last elements affect no result in any of these cases."""
    pending = [d.symbol for d in task.dims]
    for case in _some(task, cases):
        pending = [symbol for symbol in pending if not _counts(task, case, symbol)]
        if not pending:
            return
    yield from pending


def _some(task: Task, count: int) -> Iterator[Case]:
    yield benchmark_case(task, 0, task.dtypes[0])
    yield from generate(task, seed=0, count=count, dtypes=task.dtypes[:1])


def _result(task: Task, case: Case, cut: Case | None = None) -> Result | None:
    """Return the reference's result, or None if the operator or the task rejects the case.

    Args:
        task: provides the reference.
        case: provides the inputs.
        cut: a smaller case; inputs are cut to its shapes.
    """
    if not task.allows(case.sizes, case.settings):
        return None
    try:
        inputs = materialize(task, case)
        if cut is None:
            return reference(task, inputs.tensors, inputs.scalars)
        tensors = {
            spec.name: _cut(task, spec, inputs.tensors[spec.name], cut) for spec in task.tensors
        }
        return reference(task, tensors, task.scalars(cut.sizes, cut.settings))
    except _REFUSALS:
        return None


def _cut(task: Task, spec: TensorSpec, t: torch.Tensor | None, case: Case) -> torch.Tensor | None:
    """Cut a tensor to a smaller case; indices stay within it."""
    if t is None:
        return None
    shape = task.shape(spec, case.sizes, case.settings)
    left = t[tuple(slice(n) for n in shape)].clone()
    if spec.kind not in INDEX_KINDS or spec.extent is None:
        return left
    return left.clamp_max(evaluate(spec.extent, {**case.settings, **case.sizes}) - 1)


def _counts(task: Task, case: Case, symbol: str) -> bool:
    """Return whether the result changes when the elements of a larger size are cut off again."""
    size = case.sizes[symbol]
    if not task.allows(case.sizes, case.settings):
        return False
    for step in _STEPS:
        larger = case.with_dims(**{symbol: size + step})
        whole = _result(task, larger)
        part = None if whole is None else _result(task, larger, case.with_dims())
        if whole is not None and part is not None:
            return not _equal(whole, part)
    return False


def _equal(one: Result, other: Result) -> bool:
    return len(one) == len(other) and all(
        a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for a, b in zip(one, other, strict=True)
    )
