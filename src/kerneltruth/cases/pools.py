"""Make pools: more elements than an input has; a window of them is a timed call's input.

A pool is drawn once for a case, with the recipes of ordinary cases. Another window holds other
values of the same mixture, so a call's contents cost one copy, can be reproduced from the pool, and
never repeat. If elements depend on each other (a triangular matrix, rows that sum to 1), a pool is
a number of whole draws, and each use multiplies one by a factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import torch
from torch import Tensor

from kerneltruth.cases.layouts import span_of, strides_like
from kerneltruth.cases.materialize import Inputs
from kerneltruth.cases.philox import Stream, derive, stream
from kerneltruth.cases.values import draw
from kerneltruth.documents.case import Case
from kerneltruth.tasks.spec import (
    INDEX_KINDS,
    MATRIX_KINDS,
    ROW_KINDS,
    Scalar,
    Task,
    TensorSpec,
    evaluate,
)

# Elements beyond the first window, which give the number of different windows.
SLACK = 2**22
# Whole draws, if windows would break relations between elements.
DRAWS = 5
POOL_RECIPES = ("uniform", "normal")
# Factors with few bits: a product with one is rounded alike everywhere, if at all.
_FACTORS = tuple(k / 64 for k in range(32, 65))
# Applies to matrices whose determinants must stay near 1.
_NEAR_ONE = tuple(1 - k / 2**14 for k in range(33))
_WHOLE = ("tril", "triu", "mask", *ROW_KINDS, *MATRIX_KINDS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """The source of one tensor's contents.

    Attributes:
        shape: of each window's tensor.
        strides: of that tensor over the window; none where it is contiguous.
        elements: flat, in the tensor's dtype, on the CPU.
        step: windows begin at multiples of it.
        factors: a window may be multiplied by one of them; empty if it may not.
        fixed: all calls share the first window: weights, and values that a task prescribes.
    """

    spec: TensorSpec
    shape: tuple[int, ...]
    elements: Tensor
    step: int = 1
    factors: tuple[float, ...] = ()
    fixed: bool = False
    strides: tuple[int, ...] = ()

    @property
    def span(self) -> int:
        """Return how many elements a window has, gaps among them."""
        return span_of(self.shape, self.strides)

    @property
    def scaled(self) -> bool:
        """Return whether windows are multiplied by factors."""
        return bool(self.factors)

    @property
    def windows(self) -> int:
        """Return how many different windows there are."""
        return 1 if self.fixed else (self.elements.numel() - self.span) // self.step + 1

    def window(self, choice: Choice) -> Tensor:
        """Return the tensor of one call."""
        values = self.elements[choice.start : choice.start + self.span]
        if choice.factor != 1.0:
            values = values * torch.tensor(choice.factor, dtype=values.dtype)
        if not self.strides:
            return values.reshape(self.shape).clone()
        return values.as_strided(self.shape, self.strides).contiguous()

    def choose(self, rng: Stream, count: int) -> Choices:
        """Choose windows for that many calls, all different while there are enough."""
        if self.fixed:
            return Choices(starts=(0,) * count)
        starts = tuple(rng.integers(count, 0, self.windows).mul_(self.step).tolist())
        if not self.scaled:
            return Choices(starts=starts)
        chosen = rng.integers(count, 0, len(self.factors)).tolist()
        return Choices(starts=starts, factors=tuple(self.factors[f] for f in chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Where a window begins, in elements, and the factor of its elements."""

    start: int = 0
    factor: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices(Sequence[Choice]):
    """A choice for each of many calls, kept by column: a batch has hundreds.

    Attributes:
        factors: of each call; empty where nothing is scaled.
    """

    starts: tuple[int, ...]
    factors: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, call: int) -> Choice: ...
    @overload
    def __getitem__(self, call: slice) -> Choices: ...
    def __getitem__(self, call: int | slice) -> Choice | Choices:
        if isinstance(call, slice):
            return Choices(starts=self.starts[call], factors=self.factors[call])
        factor = self.factors[call] if self.factors else 1.0
        return Choice(start=self.starts[call], factor=factor)

    def ending_with(self, last: Choice) -> Choices:
        """Drop the last call."""
        factors = (*self.factors[:-1], last.factor) if self.factors else ()
        return Choices(starts=(*self.starts[:-1], last.start), factors=factors)


def pools_of(task: Task, case: Case, *, device: str = "cpu") -> dict[str, Pool]:
    """Make a pool for each tensor that the case passes; drawn on `device`, kept on the CPU."""
    settings = task.scalars(case.sizes, case.settings)
    return {
        spec.name: _pool(task, case, spec, settings, device)
        for spec in task.tensors
        if spec.name not in case.absent
    }


def _pool(
    task: Task, case: Case, spec: TensorSpec, settings: dict[str, Scalar], device: str
) -> Pool:
    shape = task.shape(spec, case.sizes, settings)
    strides = strides_like(shape, spec.example)
    count = span_of(shape, strides)
    made = partial(Pool, spec=spec, shape=shape, strides=strides)
    if spec.held is not None:
        return made(elements=window_of(spec.held(settings), strides), fixed=True)
    if spec.kind == "weight":
        parts = list(_draws(task, case, spec, shape, settings, device, (POOL_RECIPES[0],)))
        return made(elements=window_of(parts[0], strides), fixed=True)
    if spec.kind in _WHOLE or (spec.kind in INDEX_KINDS and spec.other is not None):
        recipes = tuple(POOL_RECIPES[i % len(POOL_RECIPES)] for i in range(DRAWS))
        parts = list(_draws(task, case, spec, shape, settings, device, recipes))
        floats = parts[0].is_floating_point()
        return made(
            elements=torch.cat([window_of(part, strides) for part in parts]),
            step=max(count, 1),
            factors=_factors(spec, task.scope(case.sizes, settings)) if floats else (),
        )
    share = (count + min(SLACK, max(64 * count, 1024))) // len(POOL_RECIPES) + 1
    flat = list(_draws(task, case, spec, (share,), settings, device, POOL_RECIPES))
    return made(elements=torch.cat(flat))


def window_of(values: Tensor, strides: tuple[int, ...]) -> Tensor:
    """Return a window whose tensor has these values; gaps hold zeros."""
    if not strides:
        return values.contiguous().reshape(-1)
    window = values.new_zeros(span_of(tuple(values.shape), strides))
    window.as_strided(values.shape, strides).copy_(values)
    return window


def _factors(spec: TensorSpec, scope: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the factors that keep a whole draw's properties."""
    if spec.kind in ("stochastic", "log_stochastic", "normalized", "mask"):
        return ()
    return _NEAR_ONE if spec.form and evaluate(spec.form, scope) == "near_one" else _FACTORS


def _draws(
    task: Task,
    case: Case,
    spec: TensorSpec,
    shape: tuple[int, ...],
    settings: dict[str, Scalar],
    device: str,
    recipes: tuple[str, ...],
) -> Iterator[Tensor]:
    scope = task.scope(case.sizes, settings)
    for index, recipe in enumerate(recipes):
        values = draw(
            spec,
            shape,
            dtype=case.dtype,
            recipe=recipe,
            rng=stream(derive(case.seed, "pool", str(index)), spec.name, device=device),
            extent=evaluate(spec.extent, scope) if spec.extent else None,
            limits=task.values,
            other=evaluate(spec.other, scope) if spec.other else None,
            form=evaluate(spec.form, scope) if spec.form else None,
        )
        yield values.cpu()


def inputs_at(
    task: Task, case: Case, pools: Mapping[str, Pool], at: Mapping[str, Choice]
) -> Inputs:
    """Return the inputs of the call with these windows."""
    tensors = {
        spec.name: pools[spec.name].window(at[spec.name]) if spec.name in pools else None
        for spec in task.tensors
    }
    settings = task.scalars(case.sizes, case.settings)
    return Inputs(order=task.call_order(), tensors=tensors, scalars=settings, lists=task.lists())
