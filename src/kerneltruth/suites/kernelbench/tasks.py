"""Turn a problem and its schema into a `Task`: shapes by set of constants, reference in a child."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from kerneltruth.clock.roofline.work import itemsize
from kerneltruth.documents.case import SIZES
from kerneltruth.runner.child.models import WEIGHTS
from kerneltruth.suites.kernelbench.arguments import (
    MODE,
    arguments_of,
    by_sizes,
    inputs_of,
    is_drawn,
    shown_in_call,
)
from kerneltruth.suites.kernelbench.chance import claims_of
from kerneltruth.suites.kernelbench.child_session import ProblemSession
from kerneltruth.suites.kernelbench.problem import Plain, Problem
from kerneltruth.suites.kernelbench.reference import (
    HALF,
    SHALLOW,
    UPDATED,
    ProblemReference,
    modes_of,
    narrowing,
)
from kerneltruth.suites.kernelbench.schema import Schema
from kerneltruth.tasks.gpu import GPU_DRAWS
from kerneltruth.tasks.model import CALL, PLAIN_CALL
from kerneltruth.tasks.promises import Promises
from kerneltruth.tasks.spec import (
    FLOATS,
    ArgumentSpec,
    Attribute,
    Benchmark,
    Output,
    Task,
    TensorSpec,
    WithSpread,
)

SUITE = "kernelbench"
# The suite of a file that a user names with `--reference`, and the category of its task.
REFERENCE = "reference"
OWN = "Own references"
ENTRY = "ModelNew"
BEYOND = "KernelBench does not ask for it"
# The most rows of a long set on a CPU, where an interpreter may have a program for each.
_PROGRAMS = 300


def entry_of(problem: Problem) -> str:
    """Return the default entry of a candidate for a problem."""
    return ENTRY if problem.function is None else problem.function.name


def category_of(problem: Problem) -> str:
    """Return this project's name for a KernelBench level, or for a user's own file."""
    names = {1: "Single operators", 2: "Fused operators", 3: "Networks", 4: "Language models"}
    return OWN if problem.alias else names.get(problem.level, f"Level {problem.level}")


def task_of(
    problem: Problem, schema: Schema, session: ProblemSession, *, room: int | None = None
) -> Task:
    """Return the task of a problem; one that cannot be judged on says why.

    Args:
        problem: as its file states it.
        schema: of the problem.
        session: its child.
        room: elements that the first case may have, including weights, if candidates run on a GPU;
            None means that they run on a CPU.
    """
    if not schema.dtypes:
        unseen = Schema(trouble=schema.trouble)
        return _task(problem, unseen, arguments=(), outputs=(), reference=_never)
    if room is None:
        affordable = tuple(c for c in schema.long if c.outline.rows <= _PROGRAMS)
        schema = replace(schema, long=affordable)
    last = schema.choices[-1].outline
    specs = inputs_of(schema)
    order = [s.name for s in specs]
    modes = modes_of(schema)
    drawn = [name for name in last.state if is_drawn(schema, name)]
    rounding = ("truncated", "rounded") if last.products else ()
    answered = partial(ProblemReference, session, schema, order)
    reference = answered()
    task = _task(
        problem,
        schema,
        arguments=tuple(arguments_of(problem, schema, specs, drawn)),
        outputs=tuple(_outputs(schema)),
        reference=reference,
        with_spread=reference.with_spread,
        tf32=tuple(map(answered, rounding)),
        admissible=tuple(
            map(answered, (*(f"gpu-{salt}" for salt in range(GPU_DRAWS)), "composed"))
        ),
    )
    random = tuple(m for m in modes if schema.random_in(m))
    first = schema.first if room is None else schema.largest(room)
    tensors = [s.name for s in specs if isinstance(s, TensorSpec)]
    own = Own(session, schema, tensors, drawn)
    return replace(
        _as_stated(problem.function, _holding_arranged(task, schema, own))
        if problem.function
        else task,
        own=own,
        narrowed={working: tuple(map(answered, narrowing(working))) for working in HALF},
        first={} if first is None else {SIZES: first.label, **_plain_call(task)},
        further={MODE: BEYOND} if len(modes) > 1 else {},
        random=bool(random),
        claims=claims_of(reference, random) if random else None,
    )


def _as_stated(function: Plain, task: Task) -> Task:
    """Return the task with the tolerance and the gradients that its file states."""
    if function.backward:
        extended = {name: values for name, values in task.extended.items() if name != CALL}
        task = replace(task, promises=Promises(gradients=True), extended=extended)
    if function.tolerance is None:
        return task
    share, absolute = function.tolerance
    admitted = dict.fromkeys(_FLOATS, absolute)
    return replace(task, admitted=admitted, admitted_share=share)


_FLOATS = ("float64", *FLOATS)


def _plain_call(task: Task) -> dict[str, str]:
    """Return the setting of a call without gradients, if the task has both."""
    return {CALL: PLAIN_CALL} if any(a.name == CALL for a in task.attributes) else {}


def _holding_arranged(task: Task, schema: Schema, own: Own) -> Task:
    """Return the task with offsets and permutations only as its author draws them."""
    flat = [a for a in task.arguments if not (isinstance(a, Attribute) and a.hidden)]
    arranged = {a.name for a, f in zip(flat, schema.inputs, strict=False) if f.arranged}
    if not arranged:
        return task

    def held(name: str) -> Callable[[Mapping[str, Any]], torch.Tensor]:
        return lambda scalars: own(scalars, 0)[name]

    arguments = tuple(
        replace(a, held=held(a.name)) if isinstance(a, TensorSpec) and a.name in arranged else a
        for a in task.arguments
    )
    return replace(task, arguments=arguments)


class Own:
    """Draws inputs and weights as the problem's file does."""

    def __init__(
        self,
        session: ProblemSession,
        schema: Schema,
        inputs: Sequence[str],
        weights: Sequence[str],
    ) -> None:
        self._session = session
        self._constants = {c.label: c.constants for c in schema.every}
        self._names = (*inputs, *(f"{WEIGHTS}{name}" for name in weights))
        self._weights = tuple(weights)

    def __call__(self, scalars: Mapping[str, Any], seed: int) -> dict[str, torch.Tensor]:
        """Return the tensors by name."""
        constants = self._constants[scalars[SIZES]]
        made = self._session.drawn(constants, self._weights, seed=seed)
        return dict(zip(self._names, made, strict=True))


def _never(**given: Any) -> Any:
    raise RuntimeError("this problem has no form that runs")


def _task(
    problem: Problem,
    schema: Schema,
    *,
    arguments: tuple[ArgumentSpec, ...],
    outputs: tuple[Output, ...],
    reference: Callable[..., Any],
    with_spread: WithSpread | None = None,
    tf32: tuple[Callable[..., Any], ...] = (),
    admissible: tuple[Callable[..., Any], ...] = (),
) -> Task:
    every = schema.every
    # The last two by cost are timed.
    perf = schema.choices if schema.timed is None else (*schema.choices, schema.timed)
    shown = shown_in_call(arguments)
    return Task(
        name=problem.name,
        category=category_of(problem),
        suite=REFERENCE if problem.alias else SUITE,
        signature=f"{entry_of(problem)}({', '.join(shown)})",
        description=f"{problem.title.replace('_', ' ').strip()}. {problem.says}".strip(),
        dims=(),
        arguments=arguments,
        outputs=outputs,
        reference=reference,
        dtypes=(schema.working,),
        extended_dtypes=tuple(d for d in schema.dtypes if d != schema.working),
        constraints=(),
        flops=by_sizes({c.label: c.outline.flops for c in every}) if every else "0",
        bytes=_moved(schema) if every else None,
        benchmark=Benchmark(dims={}, distribution="own"),
        tolerance={},
        terms=by_sizes({c.label: c.outline.terms for c in every}) if every else None,
        perf=tuple({SIZES: c.label} for c in perf[-2:]),
        extended={
            **{a.name: a.values[1:] for a in arguments if isinstance(a, Attribute) and a.hidden},
            SIZES: tuple(c.label for c in every if not c.core),
        },
        smaller=tuple({SIZES: c.label} for c in schema.smaller),
        entry=entry_of(problem),
        with_spread=with_spread,
        tf32=tf32,
        admissible=admissible,
        unrefereeable=schema.trouble,
        foreign=True,
        as_written=True,
        source=problem.source if problem.alias else None,
        pretrained=problem.pretrained,
    )


def _moved(schema: Schema) -> str:
    """Return the bytes of inputs, weights that the judge draws, and outputs, each once."""
    real, other = {}, {}
    dtypes = [output.dtype for output in _outputs(schema)]
    for choice in schema.every:
        outline = choice.outline
        drawn = [n for n in outline.state if is_drawn(schema, n)]
        moved = [("same", math.prod(outline.state[n])) for n in drawn]
        for value in outline.inputs:
            integers = value.dtype or "int64" if value.holds_integers else "same"
            moved.append(("bool" if value.dtype == "bool" else integers, value.elements))
        # Plain numbers among the outputs have no elements.
        moved += zip(dtypes, (value.elements for value in outline.outputs), strict=False)
        real[choice.label] = sum(n for dtype, n in moved if dtype == "same")
        other[choice.label] = sum(n * itemsize(dtype) for dtype, n in moved if dtype != "same")
    return f"{by_sizes(real)} * itemsize + {by_sizes(other)}"


def _outputs(schema: Schema) -> list[Output]:
    """Return one output for each tensor or number that the model returns; numbers are 0-dim.

    Then the buffers that a call updates, if these are checked.
    """
    described = schema.dtypes[schema.working]
    deep = schema.choices[-1].outline.products > SHALLOW
    narrow = next((d for n, d in schema.dtypes.items() if n != schema.working), described)
    found: list[Output] = []
    modes = modes_of(schema)
    for i, dtype in enumerate(described):
        # Some models return float32 for every input dtype.
        same = dtype == schema.working
        follows = same and (narrow is described or narrow[i] != schema.working)
        name = f"out{i}" if len(described) > 1 else "out"
        output = Output(
            name=name, dtype="same" if follows else dtype, spared=("gain",) if deep else ()
        )
        random = [m for m in modes if schema.random_in(m)]
        # A run of zeros at the end may be chance.
        chance = replace(output, compare="claims", spared=("last tile zeroed", "gain"))
        if len(random) == len(modes):
            found.append(chance)
        elif random:
            found.append(replace(chance, when=f"{MODE} in {tuple(random)!r}"))
            found.append(replace(output, when=f"{MODE} not in {tuple(random)!r}"))
        else:
            found.append(output)
    updated = f"{MODE} == {UPDATED!r}"
    return [*found, *(Output(name=name, when=updated) for name in schema.updated)]
