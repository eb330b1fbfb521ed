"""Bytes that a call must write and read, found with the task's own reference."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from kerneltruth.cases.materialize import Inputs
from kerneltruth.clock.roofline.work import itemsize
from kerneltruth.documents.case import Case
from kerneltruth.tasks.spec import MATRIX_KINDS, Task


def output_shapes(task: Task, case: Case) -> tuple[tuple[int, ...], ...] | None:
    """Return the shapes of the expected outputs, without computing them.

    None where the reference looks at values, as those that factor matrices do, or runs elsewhere.
    """
    settings = task.scalars(case.sizes, case.settings)
    try:
        with torch.device("meta"), torch.no_grad():
            tensors = {
                spec.name: None
                if spec.name in case.absent
                else _shape_only(task.shape(spec, case.sizes, settings), spec.dtype(case.dtype))
                for spec in task.tensors
            }
            result = task.reference(**task.keywords(tensors, settings, task.reference))
    except Exception:
        # Torch raises various errors where it needs values; the outputs then do not count.
        return None
    outputs = result if isinstance(result, tuple | list) else (result,)
    shapes = tuple(tuple(o.shape) if isinstance(o, Tensor) else () for o in outputs)
    specs = task.promised_outputs(settings, tensors)
    return shapes if len(shapes) == len(specs) else None


def _shape_only(shape: tuple[int, ...], dtype: str) -> Tensor:
    kind: torch.dtype = getattr(torch, dtype)
    return torch.empty(shape, dtype=torch.float64 if kind.is_floating_point else kind)


def output_bytes(task: Task, case: Case) -> int | None:
    """Bytes of all outputs of a call, or None where only the call itself can tell."""
    shapes = output_shapes(task, case)
    if shapes is None:
        return None
    specs = task.promised_outputs(task.scalars(case.sizes, case.settings), _present(task, case))
    return sum(
        math.prod(shape) * itemsize(output.dtype_at(case.dtype))
        for shape, output in zip(shapes, specs, strict=True)
    )


def _present(task: Task, case: Case) -> dict[str, bool | None]:
    return {s.name: None if s.name in case.absent else True for s in task.tensors}


def needed_bytes(task: Task, case: Case, inputs: Inputs, *, kept: Collection[str] = ()) -> int:
    """Bytes of input that every correct kernel must read in a call, at the least.

    An element must be read if the result changes with it. The reference's gradient shows some of
    those that do: an element where it is not 0. It misses others (a ReLU's negative ones, all
    integers), which only lowers the count. In a matrix with a known form, half the elements follow
    from the others, and half of the count is taken. Not counted are stored values, which a kernel
    may know, and tensors that it may return as they are, written in place.

    It costs a call of the reference and one backwards: ask only where a time is below the floor.

    Tensors in `kept` are the same for every call, and so may stay in a cache.
    """
    total = 0.0
    stays = {*kept, *task.writable(inputs.scalars, inputs.tensors)}
    for name, share in _shares(task, inputs).items():
        spec = next(s for s in task.tensors if s.name == name)
        tensor = inputs.tensors[name]
        if name in stays or spec.held is not None or tensor is None:
            continue
        followed = 0.5 if spec.kind in MATRIX_KINDS or spec.kind in ("tril", "triu") else 1.0
        total += followed * share * tensor.numel() * itemsize(spec.dtype(case.dtype))
    return int(total)


def _shares(task: Task, inputs: Inputs) -> Mapping[str, float]:
    """Return the share of each real input's elements with a gradient that is not 0."""
    if task.foreign:
        # It runs elsewhere, and gives no gradient.
        return {}
    wide = {
        name: None
        if t is None
        else t.to(torch.float64, copy=True).requires_grad_()
        if t.is_floating_point()
        else t.clone()
        for name, t in inputs.tensors.items()
    }
    real = {n: t for n, t in wide.items() if t is not None and t.requires_grad and t.numel()}
    # Inputs that the operator writes in place must not be leaves of the graph.
    passed = {n: t * 1 if t is not None and t.requires_grad else t for n, t in wide.items()}
    try:
        result = task.reference(**task.keywords(passed, inputs.scalars, task.reference))
        outputs = result if isinstance(result, tuple | list) else (result,)
        grown = [o for o in outputs if isinstance(o, Tensor) and o.requires_grad]
        loss = sum((_weighed(o) for o in grown), start=torch.zeros((), dtype=torch.float64))
        gradients = torch.autograd.grad(loss, list(real.values()), allow_unused=True)
    except Exception:
        # A reference without a gradient shows nothing.
        return {}
    return {
        name: float((g.nan_to_num(nan=0.0) != 0).double().mean()) if g is not None else 0.0
        for name, g in zip(real, gradients, strict=True)
    }


def _weighed(output: Tensor) -> Tensor:
    """Sum with distinct weights for all elements, so that gradients do not cancel."""
    real = torch.view_as_real(output.resolve_conj()) if output.is_complex() else output
    weights = 1 + torch.arange(real.numel(), dtype=torch.float64) * (math.pi % 1) % 1
    return (real.double().reshape(-1) * weights).sum()
