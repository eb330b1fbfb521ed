"""Make the case for a benchmark's own inputs, as large as the device allows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from math import prod

from msgspec.structs import replace

from kerneltruth.cases import shapes
from kerneltruth.cases.fitting import fit
from kerneltruth.cases.materialize import benchmark_case
from kerneltruth.cases.shapes import Device, DimSizes
from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import Case
from kerneltruth.tasks.spec import Scalar, Task

# The smallest of smaller cases has this part of the elements or less.
SMALLER_BY = 32


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


def smaller_cases(task: Task, case: Case) -> tuple[Case, ...]:
    """Return a case at smaller sizes, each twice as large as the one before or larger.

    Rows are halved first, so that a block over the other dims fits as before.
    """
    own = case.sizes
    rows = {a.symbol for a in shapes.axes(task, "cpu") if a.kind == "batch"}
    found = [case.with_dims(**sizes) for sizes in (*_halvings(own), *_halved_in_turn(own, rows))]
    sets = [a for a in task.attributes if a.hidden] if not task.dims else []
    forms = [{a.name: v} for a in sets for v in a.values if task.is_core({a.name: v})]
    found += [case.with_attributes(**form) for form in (*task.smaller, *forms)]
    most = elements_in(task, case)
    by_count = {
        count: smaller
        for smaller in found
        if not shapes.violations(task, smaller.sizes, smaller.settings)
        and 0 < (count := elements_in(task, smaller)) < most
    }
    least = max((n for n in by_count if n * SMALLER_BY <= most), default=0)
    chosen: list[int] = []
    for count in sorted(n for n in by_count if n >= least):
        if not chosen or count >= 2 * chosen[-1]:
            chosen.append(count)
    return tuple(by_count[n] for n in chosen)


def _halved_in_turn(own: DimSizes, rows: Collection[str]) -> Iterator[DimSizes]:
    """Yield the sizes with one dim halved after the other: those in `rows`, then the largest."""
    sizes = dict(own)
    while any(n > 1 for n in sizes.values()):
        symbol = max(sizes, key=lambda s: (sizes[s] > 1 and s in rows, sizes[s]))
        sizes = sizes | {symbol: sizes[symbol] // 2}
        yield sizes


def elements_in(task: Task, case: Case) -> int:
    """Return how many elements all inputs have; if there are none, about those of the result."""
    present = (spec for spec in task.tensors if spec.name not in case.absent)
    given = sum(prod(task.shape(spec, case.sizes, case.settings)) for spec in present)
    return given or prod(case.sizes.values())


def reduction(task: Task, published: Case) -> str | None:
    """Return the sizes at which the published inputs are tried, if not the benchmark's own."""
    own = {**task.benchmark.dims, **task.first}
    tried = {name: (published.sizes | published.settings)[name] for name in own}
    if tried == own:
        return None
    return f"tried at {_sizes(tried)}; the benchmark has {_sizes(own)}"


def _sizes(sizes: Mapping[str, Scalar]) -> str:
    return " ".join(f"{symbol}={n}" for symbol, n in sizes.items())


def _affordable(task: Task, case: Case, device: Device) -> dict[str, int] | None:
    """Return the benchmark's sizes, each halved only until one case is affordable."""
    own, settings, axes = case.sizes, case.settings, shapes.axes(task, device)

    def allowed(sizes: DimSizes) -> bool:
        limits = shapes.PUBLISHED_LIMITS[device]
        affordable = shapes.within(task, axes, sizes, settings, limits)
        return affordable and not shapes.violations(task, sizes, settings)

    small = fit(task, axes, device, own, settings, odd=False)
    alike = next((s for s in _halvings(own) if allowed(s)), None)
    known = [sizes for sizes in (small, alike) if sizes is not None]
    return _grown(max(known, key=_extent), own, allowed) if known else None


def _halvings(own: DimSizes) -> Iterator[DimSizes]:
    """Yield the sizes, and all of them halved as often as the largest one can be."""
    for times in range(max(own.values(), default=1).bit_length()):
        yield {symbol: max(n >> times, 1) for symbol, n in own.items()}


def _extent(sizes: DimSizes) -> int:
    return prod(sizes.values())


def _grown(sizes: DimSizes, own: DimSizes, allowed: Callable[[DimSizes], bool]) -> DimSizes:
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
