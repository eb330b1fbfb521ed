"""Turn a definition and its workloads into a task; one that cannot be judged on says why.

If every integer input is a plain number, axes become dims: a `const` axis has one size, a `var`
axis many. If integer tensors come from workloads (offsets, page tables: random ones would be
invalid), each workload is one form of the task, with its sizes and its stored tensors.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from msgspec import structs

from kerneltruth.cases.materialize import materialize
from kerneltruth.cases.strategies import generate
from kerneltruth.oracle.reference import cast
from kerneltruth.runner.host import Runner
from kerneltruth.suites.flashinfer.arguments import Refused, kind_of, number_of
from kerneltruth.suites.flashinfer.axes import (
    MOST_ELEMENTS,
    benchmark_of,
    bytes_of,
    bytes_of_forms,
    dim_of,
    flops_of,
    put_in,
    roles_of,
    solved_axes,
    solved_by,
    used_axes,
)
from kerneltruth.suites.flashinfer.definition import FLOATS, INTEGERS, Definition, Tensor
from kerneltruth.suites.flashinfer.documents import Malformed
from kerneltruth.suites.flashinfer.forms import FORM, fitting, formed, label_of
from kerneltruth.suites.flashinfer.reference import DefinitionReference, ResultFacts
from kerneltruth.suites.flashinfer.workload import Workload
from kerneltruth.suites.remote import Rejected
from kerneltruth.tasks.spec import ArgumentSpec, Attribute, Benchmark, Output, Task, TensorSpec

SUITE = "flashinfer"
_RANDOM = {"multinomial", "bernoulli", "rand", "randn", "randint", "randperm"}
_RANDOM |= {f"{name}_like" for name in ("rand", "randn", "randint")}
_RANDOM |= {f"{name}_" for name in ("bernoulli", "exponential", "normal", "uniform", "random")}


def task_of(definition: Definition, workloads: Sequence[Workload], runner: Runner) -> Task:
    """Return the task of a definition; one run of its reference, in a child, proves it."""
    reference = DefinitionReference(definition, runner)
    try:
        _refuse_random(definition)
        task = _declared(definition, workloads, reference)
        facts = _facts(task, reference)
        _check(definition, task, facts)
    except (Refused, Malformed, Rejected) as error:
        said = f"the reference fails: {error}" if isinstance(error, Rejected) else str(error)
        return replace(_task(definition, _never), unrefereeable=said)
    finally:
        reference.close()
    yields = f"The reference, given float64, yields {facts.precision} precision."
    return replace(task, description=f"{task.description} {yields}".strip())


def _refuse_random(definition: Definition) -> None:
    """Two runs may agree by chance if the likeliest choice has nearly all of the weight."""
    for node in ast.walk(ast.parse(definition.reference)):
        if isinstance(node, ast.Attribute) and node.attr in _RANDOM:
            raise Refused(f"the reference is random: it calls {node.attr}")


def _never(**given: Any) -> Any:
    raise RuntimeError("this definition has no form that runs")


def _declared(
    definition: Definition, workloads: Sequence[Workload], reference: DefinitionReference
) -> Task:
    working = _working(definition)
    outputs = tuple(_output(t, working) for t in definition.outputs)
    tables = [t for t in definition.inputs if t.shape is not None and t.dtype in INTEGERS]
    if tables or definition.data_constraints:
        small = fitting(definition, tables, workloads)
        return _of_forms(definition, small, working, outputs, reference)
    return _of_dims(definition, workloads, working, outputs, reference)


def _working(definition: Definition) -> str:
    """Return the one dtype of the floating-point inputs; further inputs may be float32."""
    for tensor in (*definition.inputs, *definition.outputs):
        if tensor.dtype == "float4_e2m1":
            raise Refused(f"{tensor.name} is float4_e2m1, which torch cannot compute with")
    found = dict.fromkeys(
        t.dtype for t in definition.inputs if t.shape is not None and t.dtype in FLOATS
    )
    if not found:
        raise Refused("no input is a tensor of floating-point numbers")
    narrow = [d for d in found if d != "float32"]
    if len(narrow) > 1:
        raise Refused(f"inputs are of several dtypes: {', '.join(narrow)}")
    return narrow[0] if narrow else "float32"


def _output(tensor: Tensor, working: str) -> Output:
    if tensor.shape is None:
        raise Refused(f"the output {tensor.name} is a plain number, not a tensor")
    dtype = "same" if tensor.dtype == working else tensor.dtype
    compare = "exact" if tensor.dtype == "bool" else "bound"
    return Output(name=tensor.name, dtype=dtype, compare=compare)  # type: ignore[arg-type]


def _of_dims(
    definition: Definition,
    workloads: Sequence[Workload],
    working: str,
    outputs: tuple[Output, ...],
    reference: DefinitionReference,
) -> Task:
    solved = solved_axes(definition)
    roles = roles_of(definition, solved)
    used = [a for a in used_axes(definition) if a not in solved]
    dims = tuple(dim_of(definition, a, roles[a]) for a in used)
    size = sum(
        math.prod(definition.axes[a] or 1 for a in t.shape or ())
        for t in (*definition.inputs, *definition.outputs)
    )
    if size > MOST_ELEMENTS:
        raise Refused(f"its smallest case has {size} elements; at most {MOST_ELEMENTS} are judged")
    arguments = tuple(
        number_of(t, definition, workloads, solved)
        if t.shape is None
        else TensorSpec(
            name=t.name, dims=tuple(solved.get(a, a) for a in t.shape), kind=kind_of(t, working)
        )
        for t in definition.inputs
    )
    return replace(
        _task(definition, reference),
        dims=dims,
        arguments=arguments,
        outputs=outputs,
        dtypes=(working,),
        constraints=tuple(
            put_in(rule, solved)
            for rule in definition.constraints
            if solved_by(rule) not in solved.items()
        ),
        flops=flops_of(roles, used),
        bytes=bytes_of(definition, working, solved),
        benchmark=benchmark_of(definition, workloads, dims),
    )


def _of_forms(
    definition: Definition,
    workloads: Sequence[Workload],
    working: str,
    outputs: tuple[Output, ...],
    reference: DefinitionReference,
) -> Task:
    labels = tuple(label_of(definition, i, w) for i, w in enumerate(workloads))
    forms = dict(zip(labels, workloads, strict=True))
    arguments: list[ArgumentSpec] = [Attribute(name=FORM, default=labels[0], values=labels)]
    for tensor in definition.inputs:
        if tensor.shape is None:
            arguments.append(number_of(tensor, definition, workloads, {}))
        else:
            arguments.append(formed(tensor, forms, working))
    sums = [a for a, r in roles_of(definition).items() if r in ("contracted", "reduced")]
    terms = {n: math.prod(max(w.axes[a], 1) for a in sums) for n, w in forms.items()}
    return replace(
        _task(definition, reference),
        arguments=tuple(arguments),
        outputs=outputs,
        dtypes=(working,),
        terms=f"{terms!r}[{FORM}]",
        bytes=bytes_of_forms(definition, working, forms, FORM),
        # At small sizes a call is mostly launch overhead.
        perf=({FORM: max(forms, key=lambda label: forms[label].elements(definition))},),
    )


def _task(definition: Definition, reference: Callable[..., Any]) -> Task:
    """Return what every task of a definition has; the rest depends on its inputs."""
    said = (
        t.name if t.shape is None else f"{t.name}[{', '.join(t.shape)}]" for t in definition.inputs
    )
    return Task(
        name=definition.name,
        category=definition.op_type,
        suite=SUITE,
        signature=f"{definition.name}({', '.join(said)})",
        description=definition.says,
        dims=(),
        arguments=(),
        outputs=(),
        reference=reference,
        dtypes=("float32",),
        extended_dtypes=(),
        constraints=(),
        flops="0",
        bytes=None,
        benchmark=Benchmark(dims={}),
        tolerance={},
        # A definition states shapes and dtypes; its tensors are contiguous.
        layouts=False,
        entry=definition.entry,
        foreign=True,
    )


def _facts(task: Task, reference: DefinitionReference) -> ResultFacts:
    """Run the reference on float64 inputs, at small sizes that satisfy the constraints."""
    case = next(iter(generate(task, seed=0, count=1, domain="core")), None)
    if case is None:
        raise Refused("no sizes satisfy its constraints")
    inputs = materialize(task, structs.replace(case, recipe="normal"))
    wide = cast(inputs.tensors, torch.float64)
    scalars = {n: v for n, v in inputs.scalars.items() if not n.startswith("_")}
    return reference.facts(**wide, **scalars)


def _check(definition: Definition, task: Task, facts: ResultFacts) -> None:
    if facts.random:
        raise Refused("the reference is random: two runs of it differ")
    if len(facts.outputs) != len(task.outputs):
        raise Refused(f"the reference returns {len(facts.outputs)} outputs")
    for tensor, seen in zip(definition.outputs, facts.outputs, strict=True):
        if seen.dtype is None:
            raise Refused(f"the reference returns a {seen.type} as {tensor.name}")
        floats = tensor.dtype in FLOATS
        if floats != seen.dtype.startswith(("float", "bfloat")):
            raise Refused(
                f"the reference returns {tensor.name} as {seen.dtype}, not as {tensor.dtype}"
            )
        if len(seen.shape) != len(tensor.shape or ()):
            raise Refused(f"the reference returns {tensor.name} of the shape {list(seen.shape)}")
