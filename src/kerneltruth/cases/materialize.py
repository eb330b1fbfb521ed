"""Turn a case into tensors. The same case gives the same bits on every device and version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

import torch
from torch import Tensor

from kerneltruth.cases.layouts import LAYOUTS
from kerneltruth.cases.philox import derive, stream
from kerneltruth.cases.recipes import OWN, RECIPES, benchmark_recipe
from kerneltruth.cases.values import draw, recipe_of, rounded, torch_dtype
from kerneltruth.documents.case import Case
from kerneltruth.errors import InternalError
from kerneltruth.tasks.model import OUT
from kerneltruth.tasks.spec import MATRIX_KINDS, Scalar, Task, TensorSpec, evaluate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inputs:
    """The arguments of one call.

    Attributes:
        order: every argument's name, in call order.
        tensors: logical values, contiguous on the CPU in their dtype; None for an absent one.
        scalars: attributes, hidden and derived ones too, by name.
        lists: the lists of tensors among the arguments, with their members.
    """

    order: tuple[str, ...]
    tensors: dict[str, Tensor | None]
    scalars: dict[str, Scalar]
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[str, Tensor | list[Tensor] | Scalar]]:
        """Return names and values in call order."""
        for name in self.order:
            if name in self.lists:
                members = (self.tensors[n] for n in self.lists[name])
                yield name, [t for t in members if t is not None]
            else:
                tensor = self.tensors.get(name)
                yield name, self.scalars.get(name) if tensor is None else tensor

    def digests(self) -> dict[str, str]:
        """Hash each tensor's elements, row-major, in its dtype: no layout changes the digest."""
        return {
            name: hashlib.sha256(flat_bytes(tensor).numpy().data).hexdigest()
            for name, tensor in self.tensors.items()
            if tensor is not None
        }


def flat_bytes(tensor: Tensor) -> Tensor:
    """Return a tensor's elements as bytes, row-major and in one dim; a view if possible."""
    flat = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1)
    # A single element counts as contiguous with any stride, which permits no view.
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8)


def layout_of(case: Case, spec: TensorSpec) -> str:
    """Return the memory layout of one tensor of a case; a rank without it gets the nearest."""
    return spec.layout if case.layout == "contiguous" else case.layout


def expanded_dim(task: Task, spec: TensorSpec, settings: dict[str, Scalar]) -> int | None:
    """Return the dim of stride 0 in `expanded`: the first batch dim, unless the task writes it."""
    if spec.name in task.mutates or spec.name in task.may_overwrite or spec.kind in MATRIX_KINDS:
        return None
    batch = {d.symbol for d in task.dims if d.role == "batch"}
    dims = task.axes(spec, settings)
    return next((i for i, symbol in enumerate(dims) if symbol in batch), None)


def materialize(task: Task, case: Case) -> Inputs:
    """Make a case's inputs, on the CPU."""
    _check(task, case)
    settings = task.scalars(case.sizes, case.settings)
    scope = task.scope(case.sizes, settings)
    own = task.own(scope, case.seed) if case.recipe == OWN and task.own is not None else {}
    tensors = {
        spec.name: None
        if spec.name in case.absent
        else _as_laid_out(task, case, spec, _as_given(spec, case, own[spec.name]))
        if spec.name in own and spec.name not in dict(case.literals)
        else _tensor(task, case, spec, settings)
        for spec in task.tensors
    }
    number = task.number_for(settings)
    given = tensors.get(number) if number is not None else None
    if number is not None and given is not None:
        # A real number, even if the tensors are complex.
        settings[number] = given.real.reshape(-1)[0].item()
        tensors[number] = None
    return Inputs(order=task.call_order(), tensors=tensors, scalars=settings, lists=task.lists())


def with_out(inputs: Inputs, shape: tuple[int, ...], dtype: str, seed: int) -> Inputs:
    """Return the inputs with a tensor for the result; a kernel may not use its contents."""
    rng = stream(seed, "values", OUT)
    drawn = RECIPES["uniform"].draw(1, max(prod(shape), 1), dtype, rng)
    tensor = rounded(drawn.reshape(-1)[: prod(shape)].reshape(shape), dtype)
    order = tuple(dict.fromkeys((*inputs.order, OUT)))
    return replace(inputs, order=order, tensors={**inputs.tensors, OUT: tensor})


def _check(task: Task, case: Case) -> None:
    specs = {spec.name: spec for spec in task.tensors}
    required = [n for n in case.absent if n not in specs or not specs[n].may_be_absent]
    strangers = [name for name, _ in case.literals if name not in specs]
    if case.task != task.key or required or strangers:
        raise InternalError(f"{case.task}: the case does not fit {task.signature}: {case}")
    if case.recipe not in RECIPES or case.layout not in LAYOUTS:
        raise InternalError(f"no recipe {case.recipe!r} or no layout {case.layout!r}")


def _as_given(spec: TensorSpec, case: Case, values: Tensor) -> Tensor:
    """Return the author's values in the tensor's dtype."""
    dtype = spec.dtype(case.dtype)
    return (values if values.dtype == torch_dtype(dtype) else rounded(values.double(), dtype)).cpu()


def _tensor(task: Task, case: Case, spec: TensorSpec, settings: dict[str, Scalar]) -> Tensor:
    # A number replaces a tensor without dims.
    number = task.number_for(settings) == spec.name
    shape = () if number else task.shape(spec, case.sizes, settings)
    literal = dict(case.literals).get(spec.name)
    if literal is not None:
        values = _literal(spec, shape, literal, case.dtype)
    elif spec.held is not None:
        values = spec.held(settings).clone()
    else:
        scope = task.scope(case.sizes, settings)
        extent = evaluate(spec.extent, scope) if spec.extent else None
        recipe = recipe_of(case.recipe, spec, task.tensors)
        values = draw(
            spec,
            shape,
            dtype=case.dtype,
            recipe=recipe,
            rng=stream(case.seed, "values", spec.name),
            extent=extent,
            limits=None if RECIPES[recipe].focus == "bias" else task.values,
            other=evaluate(spec.other, scope) if spec.other else None,
            form=evaluate(spec.form, scope) if spec.form else None,
        )
    return values.contiguous() if number else _as_laid_out(task, case, spec, values)


def _as_laid_out(task: Task, case: Case, spec: TensorSpec, values: Tensor) -> Tensor:
    """Return values that the case's layout can hold: equal along a dim of stride 0."""
    if case.layout == "expanded":
        dim = expanded_dim(task, spec, task.scalars(case.sizes, case.settings))
        if dim is not None and values.shape[dim] > 1:
            values = values.narrow(dim, 0, 1).expand(values.shape)
    return values.contiguous()


def _literal(
    spec: TensorSpec, shape: tuple[int, ...], elements: tuple[float, ...], working: str
) -> Tensor:
    values = torch.tensor(elements, dtype=torch.float64)
    count = 1
    for size in shape:
        count *= size
    if len(elements) != count:
        raise InternalError(f"{spec.name}: {len(elements)} literal values for the shape {shape}")
    return rounded(values, spec.dtype(working)).reshape(shape)


def benchmark_case(
    task: Task, seed: int, dtype: str, distribution: str | None = None, index: int = 0
) -> Case:
    """Return the index-th input that a one-shape benchmark of the task would draw.

    Attributes take the values of the task's first case and every optional tensor is present.
    """
    return Case(
        task=task.key,
        dims=tuple((d.symbol, task.benchmark.dims[d.symbol]) for d in task.dims),
        attributes=tuple((a.name, task.first.get(a.name, a.default)) for a in task.attributes),
        dtype=dtype,
        recipe=benchmark_recipe(distribution or task.benchmark.distribution),
        seed=derive(seed, task.name, "benchmark", dtype, str(index)),
        strategy="benchmark",
        domain="core" if dtype in task.dtypes else "extended",
    )
