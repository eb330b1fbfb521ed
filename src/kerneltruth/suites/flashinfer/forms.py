"""Turn workloads into forms of a task, where integer tensors must be stored ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from kerneltruth.suites.flashinfer.arguments import Refused, kind_of
from kerneltruth.suites.flashinfer.axes import MOST_ELEMENTS
from kerneltruth.suites.flashinfer.definition import INTEGERS, Definition, Tensor
from kerneltruth.suites.flashinfer.workload import Workload
from kerneltruth.tasks.spec import TensorSpec

# The hidden attribute that selects the workload of a case.
FORM = "_workload"
MOST_FORMS = 8


def fitting(
    definition: Definition, tables: Sequence[Tensor], workloads: Sequence[Workload]
) -> list[Workload]:
    """Return the smallest workloads that define the contents of the integer inputs."""
    names = ", ".join(t.name for t in tables) or "its inputs"
    if not workloads:
        raise Refused(
            f"no workload defines the contents of {names}, and random integers are not valid"
        )
    random = [t.name for t in tables if not all(t.name in w.stored for w in workloads)]
    if random:
        raise Refused(
            f"workloads leave the integers of {', '.join(random)} open: they need a safetensors "
            "file, since random ones are not valid"
        )
    small = [w for w in workloads if w.elements(definition) <= MOST_ELEMENTS]
    if not small:
        raise Refused(f"every workload has more than {MOST_ELEMENTS} elements")
    small.sort(key=lambda w: w.elements(definition))
    # First one of each set of sizes, then a second one.
    turns: Counter[tuple[int, ...]] = Counter()
    ranked: list[tuple[int, int]] = []
    for place, workload in enumerate(small):
        sizes = tuple(workload.axes.values())
        ranked.append((turns[sizes], place))
        turns[sizes] += 1
    return [small[place] for _, place in sorted(ranked)[:MOST_FORMS]]


def label_of(definition: Definition, number: int, workload: Workload) -> str:
    """Return a workload's name in cases: its number and the sizes that it chooses."""
    sizes = (f"{a}={n}" for a, n in workload.axes.items() if definition.axes[a] is None)
    return " ".join([f"#{number}", *sizes])


def formed(tensor: Tensor, forms: Mapping[str, Workload], working: str) -> TensorSpec:
    """Return a tensor with its shape per workload, and for integers also the values."""
    shapes = {n: w.shape(tensor) for n, w in forms.items()}
    typical = tuple(str(n) for n in next(iter(shapes.values())))
    same = len(set(shapes.values())) == 1
    dims = typical if same else (f"*{shapes!r}[{FORM}]",)
    held: Callable[[Mapping[str, Any]], Any] | None = None
    if tensor.dtype in INTEGERS:
        held = _Held({n: w.stored[tensor.name].load(tensor, shapes[n]) for n, w in forms.items()})
    kind = tensor.dtype if held is not None else kind_of(tensor, working)
    return TensorSpec(
        name=tensor.name, dims=dims, kind=kind, held=held, typical=None if same else typical
    )


class _Held:
    """Finds the stored tensor of the workload that a case uses."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self._tensors = tensors

    def __call__(self, settings: Mapping[str, Any]) -> torch.Tensor:
        return self._tensors[settings[FORM]]
