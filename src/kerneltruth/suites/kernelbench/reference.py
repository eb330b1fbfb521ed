"""Run the problem's own model as the reference of a task: in a child, on any device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from kerneltruth.suites.kernelbench.child_session import ProblemSession
from kerneltruth.suites.kernelbench.messages import ProblemCall, Variant
from kerneltruth.suites.kernelbench.schema import Schema
from kerneltruth.tasks.gpu import GPU_DRAWS

UPDATED = "training, and what it updates"
_TF32 = ("truncated", "rounded")
HALF = ("float16", "bfloat16")
# In a chain of more products than this, factors in TF32 or half precision may add up to 1%.
SHALLOW = 4
# How many random roundings of all results to a narrow dtype are drawn.
NARROWED = 4
# Calls with more elements, including weights, or more operations run on the judge's device: copies
# to a GPU and a context on it take longer than small evaluations.
_LARGE_ELEMENTS = 2**20
_LARGE_FLOPS = 2**30
# The most that a CPU can still evaluate in float64 if the device lacks memory.
_MOST_FLOPS_ON_CPU = 2**36


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMode:
    """How a model is called; see `ProblemCall`."""

    training: bool | None = None
    updated: tuple[str, ...] = ()


def modes_of(schema: Schema) -> dict[str, CallMode]:
    """How a model is called, by name: first as KernelBench does, then variants that it ignores."""
    names = ("training", "evaluation") if schema.training else ("evaluation", "training")
    found = {names[0]: CallMode()}
    if schema.modes:
        found[names[1]] = CallMode(training=not schema.training)
    if schema.updated:
        found[UPDATED] = CallMode(updated=schema.updated)
    return found


class _InChild(torch.autograd.Function):
    """The call as one operator of autograd: its gradients are computed in the child, too."""

    @staticmethod
    def forward(
        ctx: Any, session: ProblemSession, call: ProblemCall, names: tuple[str, ...], *tensors: Any
    ) -> tuple[torch.Tensor, ...]:
        """Return the outputs."""
        ctx.session, ctx.call, ctx.names = session, call, names
        ctx.save_for_backward(*tensors)
        outputs = session.outputs(dict(zip(names, tensors, strict=True)), call)
        ctx.mark_non_differentiable(*(o for o in outputs if not o.is_floating_point()))
        return outputs

    @staticmethod
    def backward(ctx: Any, *passed: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradient of each real tensor, for those passed in at the outputs."""
        tensors = dict(zip(ctx.names, ctx.saved_tensors, strict=True))
        found = iter(ctx.session.gradients(tensors, ctx.call, passed))
        own = (next(found) if t.is_floating_point() else None for t in tensors.values())
        return (None, None, None, *own)


class ProblemReference:
    """The problem's own model, called in a child; torch tensors in and out.

    It is the reference of a task: float64 inputs give the float64 result, others their dtype's.
    """

    def __init__(
        self,
        session: ProblemSession,
        schema: Schema,
        order: Sequence[str],
        arithmetic: str | None = None,
    ) -> None:
        self._session = session
        self._schema = schema
        self._choices = {c.label: c for c in schema.every}
        self._order = tuple(order)
        self._arithmetic = arithmetic

    def __call__(
        self, *, _sizes: str, _mode: str | None = None, **given: Any
    ) -> tuple[torch.Tensor, ...]:
        """Return the outputs.

        Raises:
            Rejected: the model does not accept these inputs.
        """
        tensors, call = _tensors(given), self._call(_sizes, _mode, given)
        if not (torch.is_grad_enabled() and any(t.requires_grad for t in tensors.values())):
            return self._session.outputs(tensors, call)
        found: tuple[torch.Tensor, ...] = _InChild.apply(  # type: ignore[no-untyped-call]
            self._session, call, tuple(tensors), *tensors.values()
        )
        return found

    def runs(
        self, count: int, *, _sizes: str, _mode: str | None = None, **given: Any
    ) -> tuple[torch.Tensor, ...]:
        """Return the outputs of `count` runs, each stacked.

        Raises:
            Rejected: the model does not accept these inputs.
        """
        call = self._call(_sizes, _mode, given)
        return self._session.outputs(_tensors(given), call, count=count)

    def with_spread(
        self,
        given: Mapping[str, Any],
        *,
        working: str,
        promised: Sequence[str],
        tf32: bool,
        beside: bool = False,
    ) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]] | None:
        """Implement `tasks.spec.WithSpread`; None for small sets, and if no device helps.

        In addition to runs on a CPU, it is needed if a GPU's libraries round differently at every
        layer.

        Raises:
            Rejected: the model does not accept these inputs, or they are too large for all devices.
        """
        arguments = dict(given)
        sizes, mode = arguments.pop("_sizes"), arguments.pop("_mode", None)
        call = self._call(sizes, mode, arguments)
        products = self._choices[sizes].outline.products
        wanted = working in HALF or products > SHALLOW if beside else call.large
        if not (wanted and self._session.has_device):
            return None
        variants = _variants(working, tf32=tf32 and products > 0)
        tensors = _tensors(arguments)
        return self._session.with_spread(
            tensors, replace(call, dtype="float64"), variants, promised
        )

    def _call(self, sizes: str, mode: str | None, given: Mapping[str, Any]) -> ProblemCall:
        tensors = _tensors(given)
        floats = [t.dtype for t in tensors.values() if t.is_floating_point()]
        # One tensor may keep float32 beside narrower ones.
        narrowest = min(floats, key=lambda d: d.itemsize, default=torch.float64)
        dtype = str(narrowest).removeprefix("torch.")
        chosen = modes_of(self._schema).get(mode or "", CallMode())
        outline = self._choices[sizes].outline
        return ProblemCall(
            constants=self._choices[sizes].constants,
            order=self._order,
            scalars={n: repr(given[n]) for n in self._order if n not in tensors},
            dtype=dtype,
            arithmetic=self._arithmetic,
            training=chosen.training,
            updated=chosen.updated,
            large=outline.elements + outline.weights > _LARGE_ELEMENTS
            or outline.flops > _LARGE_FLOPS,
            on_cpu=outline.flops <= _MOST_FLOPS_ON_CPU,
        )


def _tensors(given: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return the tensors by name, with the members of lists."""
    found = {n: v for n, v in given.items() if isinstance(v, torch.Tensor)}
    lists = {n: v for n, v in given.items() if isinstance(v, list)}
    return found | {member_name(n, i): t for n, v in lists.items() for i, t in enumerate(v)}


def member_name(name: str, place: int) -> str:
    """Return the name of a tensor in a list."""
    return f"{name}_{place}"


def narrowing(working: str) -> tuple[str, ...]:
    """Return arithmetics that round every result to a narrow dtype, each with its own seed."""
    return tuple(f"{working}-{salt}" for salt in range(NARROWED))


def _variants(working: str, *, tf32: bool) -> list[Variant]:
    """Return the other evaluations: those that `oracle.admissible` uses for large inputs."""
    inner = "float32" if working in HALF else working
    found = [Variant(dtype=inner)]
    if inner != working:
        found += [Variant(dtype=working), Variant(dtype=working, columns=True, settles=False)]
        # Large results have many elements per sample.
        found += [Variant(dtype=inner, arithmetic=how) for how in narrowing(working)[:GPU_DRAWS]]
    found += [Variant(dtype=inner, arithmetic=f"gpu-{salt}") for salt in range(GPU_DRAWS)]
    if tf32 and working == "float32":
        found += [Variant(dtype="float64", arithmetic=how, settles=False) for how in _TF32]
    return found
