"""Inputs of timed calls: arguments, the pools behind them, and contents for many calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

from torch import Tensor

from kerneltruth.cases.layouts import strides_like
from kerneltruth.cases.materialize import Inputs, flat_bytes
from kerneltruth.cases.philox import Stream
from kerneltruth.cases.pools import Choice, Choices, Pool, inputs_at, pools_of, window_of
from kerneltruth.documents.case import Case
from kerneltruth.runner.arguments import ScalarArgument
from kerneltruth.runner.read_only_memfd import ReadOnlyMemfd
from kerneltruth.runner.timing.messages import FillBuffers, Supply
from kerneltruth.tasks.spec import Derived, Task, TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents(Sequence[dict[str, Choice]]):
    """The contents of the tensors of many calls: for each call, a choice by name.

    Attributes:
        calls: how many; a task may have no tensors that move.
        chosen: by name of the tensor, of each call.
    """

    calls: int
    chosen: Mapping[str, Choices]

    def __len__(self) -> int:
        return self.calls

    @overload
    def __getitem__(self, call: int) -> dict[str, Choice]: ...
    @overload
    def __getitem__(self, call: slice) -> Contents: ...
    def __getitem__(self, call: int | slice) -> dict[str, Choice] | Contents:
        if isinstance(call, slice):
            chosen = {name: choices[call] for name, choices in self.chosen.items()}
            return Contents(calls=len(range(self.calls)[call]), chosen=chosen)
        if not -self.calls <= call < self.calls:
            raise IndexError(call)
        return {name: choices[call] for name, choices in self.chosen.items()}

    def ending_with(self, last: Mapping[str, Choice]) -> Contents:
        """Drop the last call."""
        chosen = {n: choices.ending_with(last[n]) for n, choices in self.chosen.items()}
        return replace(self, chosen=chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchInputs:
    """The inputs of a benchmark's calls: arguments in order, and the pools behind them.

    `held` keeps the files that arguments name by path.
    """

    arguments: tuple[Supply | ScalarArgument, ...]
    pools: Mapping[str, Pool]
    held: tuple[ReadOnlyMemfd, ...] = ()

    @property
    def moving(self) -> list[Supply]:
        """Return the tensors that are different in each call."""
        return [a for a in self.arguments if isinstance(a, Supply) and not a.fixed]

    @property
    def strides(self) -> dict[str, tuple[int, ...]]:
        """Return the strides of the tensors that are not contiguous."""
        return {a.name: a.strides for a in self.arguments if isinstance(a, Supply) and a.strides}

    @property
    def buffer_bytes(self) -> int:
        """Memory of one call's inputs."""
        return sum(a.span * self.pools[a.name].elements.element_size() for a in self.moving)

    def at(self, task: Task, case: Case, choices: Mapping[str, Choice]) -> Inputs:
        """Return the tensors of the call with these contents."""
        return inputs_at(task, case, self.pools, {n: choices.get(n, Choice()) for n in self.pools})

    def given(self, calls: Sequence[Mapping[str, Choice]]) -> Contents:
        """These contents, for as many calls."""
        chosen = {
            a.name: Choices(
                starts=tuple(call[a.name].start for call in calls),
                factors=tuple(call[a.name].factor for call in calls)
                if self.pools[a.name].scaled
                else (),
            )
            for a in self.moving
        }
        return Contents(calls=len(calls), chosen=chosen)

    def draw(self, rng: Stream, count: int) -> Contents:
        """Draw contents for `calls` calls."""
        chosen = {a.name: self.pools[a.name].choose(rng, count) for a in self.moving}
        return Contents(calls=count, chosen=chosen)

    def refill(self, buffers: Sequence[int], contents: Contents) -> FillBuffers:
        """Return the request that fills buffers with these contents."""
        chosen = contents.chosen.values()
        scaled = any(c.factors for c in chosen)
        return FillBuffers(
            buffers=tuple(buffers),
            windows=tuple(c.starts for c in chosen),
            scales=tuple(c.factors for c in chosen) if scaled else (),
        )


# Children read pools of at least this many bytes in place.
SHARED_FROM = 2**20


def make_bench_inputs(
    task: Task,
    case: Case,
    *,
    device: str = "cpu",
    leave: contextlib.AbstractContextManager[None] | None = None,
) -> BenchInputs:
    """Make the inputs of a case; pools are drawn on `device`, within the context `leave`."""
    with leave or contextlib.nullcontext():
        pools = pools_of(task, case, device=device)
    settings = task.scalars(case.sizes, case.settings)
    present = dict.fromkeys(pools, True)
    written = task.written(settings, present)
    held: list[ReadOnlyMemfd] = []

    def supply(spec: TensorSpec) -> Supply:
        pool = pools[spec.name]
        elements = _shared(pool.elements)
        if isinstance(elements, ReadOnlyMemfd):
            held.append(elements)
        return Supply(
            name=spec.name,
            dtype=str(pool.elements.dtype).removeprefix("torch."),
            shape=pool.shape,
            pool=b"" if isinstance(elements, ReadOnlyMemfd) else elements,
            path=elements.path if isinstance(elements, ReadOnlyMemfd) else None,
            member_of=spec.member_of,
            fixed=pool.fixed,
            shown=spec.name in written,
            strides=pool.strides,
        )

    arguments = tuple(_arguments(task, case, supply))
    return BenchInputs(arguments=arguments, pools=pools, held=tuple(held))


def rehearsal_arguments(task: Task, case: Case) -> tuple[Supply | ScalarArgument, ...]:
    """Return the arguments of calls on a case, with zeros for tensors of unknown contents."""
    settings = task.scalars(case.sizes, case.settings)

    def supply(spec: TensorSpec) -> Supply:
        shape = task.shape(spec, case.sizes, settings)
        strides = strides_like(shape, spec.example)
        held = None if spec.held is None else window_of(spec.held(settings), strides)
        return Supply(
            name=spec.name,
            dtype=spec.dtype(case.dtype),
            shape=shape,
            pool=b"" if held is None else bytes(_bytes_of(held)),
            member_of=spec.member_of,
            strides=strides,
        )

    return tuple(_arguments(task, case, supply))


def _arguments(
    task: Task, case: Case, supply: Callable[[TensorSpec], Supply]
) -> Iterator[Supply | ScalarArgument]:
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


def _shared(elements: Tensor) -> bytes | ReadOnlyMemfd:
    """Return a pool's bytes; every child can read large ones in place."""
    data = _bytes_of(elements)
    return bytes(data) if len(data) < SHARED_FROM else ReadOnlyMemfd(data)


def _bytes_of(elements: Tensor) -> memoryview:
    return memoryview(flat_bytes(elements).numpy().data)
