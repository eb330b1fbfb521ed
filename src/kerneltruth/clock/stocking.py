"""What timed calls of a case take: arguments, pools, and which shapes are timed at all."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from kerneltruth.cases.case import Case
from kerneltruth.cases.materialize import benchmark_case, flat_bytes
from kerneltruth.cases.pools import pools_of
from kerneltruth.clock.contestants import Inputs
from kerneltruth.clock.roofline.traffic import output_shapes
from kerneltruth.runner.protocol import ScalarArgument, Supply
from kerneltruth.runner.sealed import Sealed
from kerneltruth.tasks.spec import Derived, Scalar, Task, TensorSpec

# Elements of all inputs together, and of all outputs: with more, a shape takes too long to prepare
# and to grade.
MOST_ELEMENTS = 2**25
# Bytes of a pool from which on children read it where it lies.
SHARED_FROM = 2**20


def timed_cases(task: Task, *, dtype: str | None = None, seed: int = 0) -> tuple[Case, ...]:
    """The task's shapes to time, small to large; its benchmark's shape where it names none."""
    base = benchmark_case(task, seed, dtype or task.dtypes[0])
    found = [_timed_case(task, base, shape) for shape in task.perf]
    return tuple(case for case in found if case is not None) or (base,)


def left_out(task: Task, *, dtype: str | None = None) -> tuple[str, ...]:
    """Shapes of the task that are not timed, as `M=65536 N=65536`: most are too large."""
    base = benchmark_case(task, 0, dtype or task.dtypes[0])
    return tuple(
        " ".join(f"{name}={value}" for name, value in shape.items())
        for shape in task.perf
        if _timed_case(task, base, shape) is None
    )


def _timed_case(task: Task, base: Case, shape: Mapping[str, Any]) -> Case | None:
    """The case of a shape; None if it is too large, or not one of this dtype."""
    # A task without dims names its shapes by an attribute.
    settings = base.settings
    forms = settings | {n: v for n, v in shape.items() if n in settings}
    fits = _elements(task, shape, forms) <= MOST_ELEMENTS
    if not fits or not task.allows(shape, forms, to_time=True):
        return None
    dims = tuple((d.symbol, shape[d.symbol]) for d in task.dims)
    case = replace(base, dims=dims, attributes=tuple(forms.items()))
    outputs = output_shapes(task, case) or ()
    return case if sum(map(math.prod, outputs)) <= MOST_ELEMENTS else None


def _elements(task: Task, dims: Mapping[str, Any], settings: Mapping[str, Scalar]) -> int:
    return sum(math.prod(task.shape(spec, dims, settings)) for spec in task.tensors)


def stocked(
    task: Task,
    case: Case,
    *,
    device: str = "cpu",
    leave: contextlib.AbstractContextManager[None] | None = None,
) -> Inputs:
    """The inputs of a contest on a case; pools are drawn on `device`, within `leave` to use it."""
    with leave or contextlib.nullcontext():
        pools = pools_of(task, case, device=device)
    settings = task.scalars(case.sizes, case.settings)
    present = dict.fromkeys(pools, True)
    written = task.written(settings, present)
    held: list[Sealed] = []

    def supply(spec: TensorSpec) -> Supply:
        pool = pools[spec.name]
        elements = _shared(pool.elements)
        if isinstance(elements, Sealed):
            held.append(elements)
        return Supply(
            name=spec.name,
            dtype=str(pool.elements.dtype).removeprefix("torch."),
            shape=pool.shape,
            pool=b"" if isinstance(elements, Sealed) else elements,
            path=elements.path if isinstance(elements, Sealed) else None,
            member_of=spec.member_of,
            fixed=pool.fixed,
            shown=spec.name in written,
        )

    arguments = tuple(_arguments(task, case, supply))
    return Inputs(arguments=arguments, pools=pools, held=tuple(held))


def rehearsed(task: Task, case: Case) -> tuple[Supply | ScalarArgument, ...]:
    """What calls on a case take, with zeros where the task does not say what tensors hold."""
    settings = task.scalars(case.sizes, case.settings)

    def supply(spec: TensorSpec) -> Supply:
        held = None if spec.held is None else spec.held(settings)
        return Supply(
            name=spec.name,
            dtype=spec.dtype(case.dtype),
            shape=task.shape(spec, case.sizes, settings),
            pool=b"" if held is None else bytes(_bytes_of(held)),
            member_of=spec.member_of,
        )

    return tuple(_arguments(task, case, supply))


def _arguments(
    task: Task, case: Case, supply: Callable[[TensorSpec], Supply]
) -> Iterator[Supply | ScalarArgument]:
    """The arguments of a call in order; `supply` makes those of tensors that the case passes."""
    settings = task.scalars(case.sizes, case.settings)
    for spec in task.arguments:
        if not isinstance(spec, TensorSpec):
            if isinstance(spec, Derived) or not spec.hidden:
                default = getattr(spec, "default", None)
                yield ScalarArgument(name=spec.name, value=settings[spec.name], default=default)
        elif spec.name not in case.absent:
            yield supply(spec)
        elif spec.member_of is None:
            yield ScalarArgument(name=spec.name, value=None)


def _shared(elements: Tensor) -> bytes | Sealed:
    """A pool's bytes; large ones lie where every child can read them."""
    data = _bytes_of(elements)
    return bytes(data) if len(data) < SHARED_FROM else Sealed(data)


def _bytes_of(elements: Tensor) -> memoryview:
    return memoryview(flat_bytes(elements).numpy().data)
