"""Make the case for a benchmark's own inputs, as large as the device allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod

from msgspec.structs import replace

from kerneltruth.cases import shapes
from kerneltruth.cases.fitting import fit
from kerneltruth.cases.materialize import benchmark_case
from kerneltruth.cases.shapes import Device, Sizes
from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import Case
from kerneltruth.tasks.spec import Task


def published_dtype(task: Task) -> str:
    """Return the dtype of the published inputs: the first that the prompt promises."""
    return next(iter(task.promised_dtypes), task.dtypes[0])


def published_case(task: Task, *, seed: int, device: str) -> Case:
    """Return the benchmark's inputs: its sizes, values, dtype and mode.

    Sizes are halved only until the case costs as much as a few ordinary ones.
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
    """Return the sizes at which the published inputs are tried, if not the benchmark's own."""
    own = dict(task.benchmark.dims)
    if task.first or published.sizes == own:
        return None
    return f"tried at {_sizes(published.sizes)}; the benchmark has {_sizes(own)}"


def _sizes(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{symbol}={n}" for symbol, n in sizes.items())


def _affordable(task: Task, case: Case, device: Device) -> dict[str, int] | None:
    """Return the benchmark's sizes, each halved only until one case is affordable."""
    own, settings, axes = case.sizes, case.settings, shapes.axes(task, device)

    def allowed(sizes: Sizes) -> bool:
        limits = shapes.PUBLISHED_LIMITS[device]
        affordable = shapes.within(task, axes, sizes, settings, limits)
        return affordable and not shapes.violations(task, sizes, settings)

    small = fit(task, axes, device, own, settings, odd=False)
    alike = next((s for s in _halvings(own) if allowed(s)), None)
    known = [sizes for sizes in (small, alike) if sizes is not None]
    return _grown(max(known, key=_extent), own, allowed) if known else None


def _halvings(own: Sizes) -> Iterator[Sizes]:
    """Yield the sizes, and all of them halved as often as the largest one can be."""
    for times in range(max(own.values(), default=1).bit_length()):
        yield {symbol: max(n >> times, 1) for symbol, n in own.items()}


def _extent(sizes: Sizes) -> int:
    return prod(sizes.values())


def _grown(sizes: Sizes, own: Sizes, allowed: Callable[[Sizes], bool]) -> Sizes:
    """Undo halvings while the result is allowed, starting with the dim that lost the most."""
    while True:
        shrunk = sorted((s for s in own if sizes[s] < own[s]), key=lambda s: sizes[s] / own[s])
        larger = (sizes | {s: _next_larger(sizes[s], own[s])} for s in shrunk)
        found = next(filter(allowed, larger), None)
        if found is None:
            return sizes
        sizes = found


def _next_larger(n: int, own: int) -> int:
    """Return the smallest halving of a benchmark's size that is larger."""
    return next(own >> k for k in reversed(range(own.bit_length())) if own >> k > n)
