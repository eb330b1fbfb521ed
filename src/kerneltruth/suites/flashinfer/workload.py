"""Workloads: sizes of the var axes, plain numbers, and tensors stored beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from kerneltruth.suites.flashinfer.definition import Definition, Tensor
from kerneltruth.suites.flashinfer.documents import Malformed, field, lines_below
from kerneltruth.suites.submission import Broken

FOLDER = "workloads"
_KINDS = ("random", "scalar", "safetensors")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """A tensor in a safetensors file."""

    path: Path
    key: str

    def load(self, tensor: Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        """Read the tensor.

        Raises:
            Malformed: it is missing, or has another dtype or shape.
        """
        try:
            with safe_open(self.path, framework="pt") as file:
                found: torch.Tensor = file.get_tensor(self.key)
        except (OSError, SafetensorError) as error:
            said = str(error).splitlines()[0]
            raise Malformed(f"{tensor.name}: cannot read {self.path.name}: {said}") from error
        dtype = str(found.dtype).removeprefix("torch.")
        if dtype != tensor.dtype or tuple(found.shape) != shape:
            raise Malformed(
                f"{tensor.name}: {self.path.name} holds {dtype}{list(found.shape)}, "
                f"not {tensor.dtype}{list(shape)}"
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One set of sizes with contents of inputs; an input in neither table is random."""

    axes: Mapping[str, int]
    scalars: Mapping[str, bool | int | float]
    stored: Mapping[str, StoredTensor]

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """Return the concrete shape of a tensor."""
        return tuple(self.axes[a] for a in tensor.shape or ())

    def elements(self, definition: Definition) -> int:
        """Return how many elements all inputs and outputs have."""
        tensors = (*definition.inputs, *definition.outputs)
        return sum(math.prod(self.shape(t)) for t in tensors)


def read_workloads(
    root: Path, definitions: Mapping[str, Definition]
) -> tuple[dict[str, list[Workload]], list[Broken]]:
    """Return the workloads of a data set by definition, and broken lines with reasons."""
    found: dict[str, list[Workload]] = {}
    broken: list[Broken] = []
    for item in lines_below(root / FOLDER):
        if isinstance(item, Broken):
            broken.append(item)
            continue
        where, line = item
        try:
            name = field(line, "definition", str)
            if name not in definitions:
                raise Malformed(f"unknown definition {name!r}")
            made = workload_of(field(line, "workload", dict), definitions[name], root)
        except Malformed as error:
            broken.append(Broken(origin=where, reason=str(error)))
            continue
        found.setdefault(name, []).append(made)
    return found, broken


def workload_of(data: Mapping[str, object], definition: Definition, root: Path) -> Workload:
    """Parse the workload in an object.

    Raises:
        Malformed: it does not follow the schema, or does not fit the definition.
    """
    given = field(data, "axes", dict)
    axes = {n: v if v is not None else field(given, n, int) for n, v in definition.axes.items()}
    if min(axes.values(), default=0) < 0:
        raise Malformed(f"a negative size in {given}")
    scalars: dict[str, bool | int | float] = {}
    stored: dict[str, StoredTensor] = {}
    for name, item in field(data, "inputs", dict).items():
        if not isinstance(item, dict) or item.get("type") not in _KINDS:
            raise Malformed(f"the input {name!r} needs a type: {', '.join(_KINDS)}")
        if item["type"] == "scalar":
            value = item.get("value")
            if not isinstance(value, bool | int | float):
                raise Malformed(f"the input {name!r} needs a number as its value")
            scalars[name] = value
        elif item["type"] == "safetensors":
            path = (root / field(item, "path", str)).resolve()
            if not path.is_relative_to(root.resolve()):
                raise Malformed(f"the input {name!r} lies outside of the data set: {item['path']}")
            stored[name] = StoredTensor(path=path, key=field(item, "tensor_key", str))
    return Workload(axes=axes, scalars=scalars, stored=stored)
