"""Indices of equal elements, in whatever order: what a foreign reference returns of sort or topk.

PyTorch promises no order of equal elements there. A task of ours says so; a foreign program shows
it: an output holds indices that come once a row and, in order, point at another output's values, or
at elements in ascending or descending order. PyTorch does promise which of equal elements a maximum
names, the first: one index a row may name any only where the reference itself names a later one, or
where their count may be an argument, as of a topk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from kerneltruth.cases.materialize import Inputs
from kerneltruth.tasks.spec import Output, Task


def with_ties(
    task: Task, specs: Sequence[Output], inputs: Inputs, truth: Sequence[torch.Tensor]
) -> tuple[Output, ...]:
    """Return the outputs; those that hold indices of ordered elements accept any order of ties."""
    if not task.foreign:
        return tuple(specs)
    return tuple(_with_ties(spec, i, inputs, truth) for i, spec in enumerate(specs))


def _with_ties(
    spec: Output, position: int, inputs: Inputs, truth: Sequence[torch.Tensor]
) -> Output:
    indices = truth[position]
    if spec.compare in ("accept", "claims") or indices.dtype != torch.int64:
        return spec
    for name, tensor in inputs.tensors.items():
        for dim in range(indices.ndim):
            if tensor is None or not _may_be_indices(indices, tensor, dim):
                continue
            expected = tensor.gather(dim, indices)
            values = (t for t in truth if t.shape == expected.shape and t.is_floating_point())
            returned = any(bool(_same(t, expected).all()) for t in values)
            if indices.shape[dim] == 1:
                later = not _are_first(indices, tensor, expected, dim)
                fits = returned and (later or _may_count(inputs.scalars))
            else:
                fits = returned or _is_ordered(expected, dim)
            if fits:
                accept = partial(_accepted, position=position, name=name, dim=dim)
                return replace(spec, compare="accept", accept=accept)
    return spec


def _may_count(scalars: Mapping[str, Any]) -> bool:
    """Whether one of these may say that one element a row is wanted; 1 may also name a dim."""
    counts = (value for name, value in scalars.items() if name not in ("dim", "axis"))
    return any(type(value) is int and value == 1 for value in counts)


def _may_be_indices(indices: torch.Tensor, tensor: torch.Tensor, dim: int) -> bool:
    """Whether these may be indices in a dim of a tensor, each once a row."""
    if not tensor.is_floating_point() or tensor.ndim != indices.ndim:
        return False
    others = (d for d in range(indices.ndim) if d != dim)
    if any(tensor.shape[d] != indices.shape[d] for d in others) or not indices.numel():
        return False
    in_range = (indices >= 0) & (indices < tensor.shape[dim])
    return bool(in_range.all()) and not bool(_repeated(indices, dim).any())


def _accepted(
    inputs: Mapping[str, Any],
    outputs: Sequence[torch.Tensor],
    reference: Sequence[torch.Tensor],
    *,
    position: int,
    name: str,
    dim: int,
) -> torch.Tensor:
    """Return where an index points at an element equal to the expected one, once a row."""
    source, indices = inputs[name], outputs[position].long()
    in_range = (indices >= 0) & (indices < source.shape[dim])
    found = source.gather(dim, indices.clamp(0, source.shape[dim] - 1))
    expected = source.gather(dim, reference[position].long())
    right: torch.Tensor = in_range & _same(found, expected) & ~_repeated(indices, dim)
    return right


def _repeated(indices: torch.Tensor, dim: int) -> torch.Tensor:
    """Return which indices stand in their row elsewhere, too."""
    ordered, places = indices.sort(dim)
    twice = ordered.diff(dim=dim) == 0
    ends = twice.new_zeros(()).expand(*(1 if d == dim else n for d, n in enumerate(twice.shape)))
    either = torch.cat((ends, twice), dim) | torch.cat((twice, ends), dim)
    return torch.zeros_like(either).scatter(dim, places, either)


def _are_first(
    indices: torch.Tensor, tensor: torch.Tensor, expected: torch.Tensor, dim: int
) -> bool:
    """Whether each index names the first element of its row that equals the expected one."""
    first = _same(tensor, expected).int().argmax(dim, keepdim=True)
    return bool((first == indices).all())


def _is_ordered(values: torch.Tensor, dim: int) -> bool:
    steps = values.double().diff(dim=dim)
    return bool((steps >= 0).all()) or bool((steps <= 0).all())


def _same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.double() == b.double()) | (a.isnan() & b.isnan())
