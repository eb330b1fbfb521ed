"""Turn a definition's inputs into arguments of a task: kinds of tensors, values of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kerneltruth.suites.flashinfer.definition import FLOATS, Definition, Tensor
from kerneltruth.suites.flashinfer.workload import Workload
from kerneltruth.tasks.spec import ArgumentSpec, Attribute, Derived, Scalar

_EPSILONS: tuple[Scalar, ...] = (1e-6, 1e-5)
_FACTORS: tuple[Scalar, ...] = (1.0, 0.125)
_MOST_VALUES = 4


class Refused(Exception):
    """The definition cannot be judged on; the message says why."""


def kind_of(tensor: Tensor, working: str) -> str:
    """Return the kind of a drawn tensor if most are of the dtype `working`."""
    if tensor.dtype == "bool":
        return "bool"
    return "real" if tensor.dtype == working else tensor.dtype


def number_of(
    tensor: Tensor,
    definition: Definition,
    workloads: Sequence[Workload],
    solved: Mapping[str, str],
) -> ArgumentSpec:
    """Return a plain number: from workloads, else an axis of its name, else values of its dtype."""
    said = dict.fromkeys(
        (type(w.scalars[tensor.name]), w.scalars[tensor.name])
        for w in workloads
        if tensor.name in w.scalars
    )
    values: tuple[Scalar, ...] = tuple(v for _, v in said)[:_MOST_VALUES]
    if not values and tensor.name in definition.axes:
        return Derived(name=tensor.name, expression=solved.get(tensor.name, tensor.name))
    if not values:
        values = _usual(tensor)
    if tensor.dtype in FLOATS:
        values = tuple(dict.fromkeys(float(v) for v in values))  # type: ignore[arg-type]
    return Attribute(name=tensor.name, default=values[0], values=values)


def _usual(tensor: Tensor) -> tuple[Scalar, ...]:
    if tensor.dtype == "bool":
        return (False, True)
    if tensor.dtype not in FLOATS:
        raise Refused(f"no workload says which integer the input {tensor.name} may be")
    return _EPSILONS if "eps" in tensor.name.lower() else _FACTORS
