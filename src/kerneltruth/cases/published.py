"""Make the case for a benchmark's own inputs, as large as the device allows."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kerneltruth.cases import shapes
from kerneltruth.cases.fitting import fit
from kerneltruth.cases.materialize import benchmark_case
from kerneltruth.cases.shapes import Device
from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import Case
from kerneltruth.tasks.spec import Task


def published_dtype(task: Task) -> str:
    """Return the dtype of the published inputs: the first that the prompt promises."""
    return next(iter(task.promised_dtypes), task.dtypes[0])


def published_case(task: Task, *, seed: int, device: str) -> Case:
    """Return the benchmark's inputs: its sizes, values, dtype and mode.

    Sizes are halved until the case costs no more than an ordinary one on the device.
    """
    dtype = published_dtype(task)
    if not task.first:
        case = replace(benchmark_case(task, seed, dtype), strategy="published", domain="core")
        sizes = _affordable(task, case, "cpu" if device == "cpu" else "cuda")
        if sizes is not None:
            return case.with_dims(**sizes)
    found = next(
        generate(task, strategies=("default",), seed=seed, count=1, device=device, dtypes=(dtype,))
    )
    return replace(found, strategy="published")


def reduction(task: Task, published: Case) -> str | None:
    """Return at which sizes the published inputs are tried, if not at the benchmark's own."""
    own = dict(task.benchmark.dims)
    if task.first or published.sizes == own:
        return None
    return f"tried at {_sizes(published.sizes)}; the benchmark has {_sizes(own)}"


def _sizes(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{symbol}={n}" for symbol, n in sizes.items())


def _affordable(task: Task, case: Case, device: Device) -> dict[str, int] | None:
    return fit(task, shapes.axes(task, device), device, case.sizes, case.settings, odd=False)
