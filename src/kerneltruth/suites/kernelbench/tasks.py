"""Turn a problem and its schema into a `Task`: shapes by set of constants, reference in a child."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from kerneltruth.clock.roofline.work import itemsize
from kerneltruth.runner.child.models import CALLED, CONSTRUCTED, FILLED, WEIGHTS
from kerneltruth.suites.kernelbench.chance import contract
from kerneltruth.suites.kernelbench.child_session import ProblemSession
from kerneltruth.suites.kernelbench.problem import Plain, Problem
from kerneltruth.suites.kernelbench.reference import (
    HALF,
    SHALLOW,
    UPDATED,
    ProblemReference,
    member_name,
    modes_of,
    narrowing,
)
from kerneltruth.suites.kernelbench.schema import Input, InputFacts, Schema
from kerneltruth.tasks.gpu import GPU_DRAWS
from kerneltruth.tasks.model import BACKWARD, CALL, PLAIN_CALL
from kerneltruth.tasks.promises import Promises
from kerneltruth.tasks.spec import (
    FLOATS,
    Argument,
    Attribute,
    Benchmark,
    Derived,
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
# The hidden attributes that select a case's constants, and how the model is called.
SIZES = "_sizes"
MODE = "_mode"
BEYOND = "KernelBench does not ask for it"

_FORMS = {
    "sign": "sign",
    "stochastic": "stochastic",
    "symmetric": "symmetric",
    "upper": "triu",
    "lower": "tril",
}
_OF_SQUARES = ("symmetric", "upper", "lower")
_STATISTICS = {"running_mean": (-0.5, 0.5), "running_var": (0.5, 1.5)}
# Weights of this spread keep the size of what passes through a layer and a ReLU (He et al., 2015),
# so that the output of a deep network still depends on its input. Feedback loops grow.
_GAIN = math.sqrt(6.0)
_RECURRENT = ("weight_ih_", "weight_hh_")
# The most that a weight differs from the one number with which a constructor fills it.
_AROUND = 0.25


def entry_of(problem: Problem) -> str:
    """Return what a candidate for a problem defines, if its file does not say otherwise."""
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
    choices = schema.choices
    if not schema.dtypes:
        unseen = Schema(trouble=schema.trouble)
        return _task(problem, unseen, arguments=(), outputs=(), reference=_never)
    last = choices[-1].outline
    specs = _inputs(schema)
    order = [s.name for s in specs]
    labels = tuple(c.label for c in choices)
    arguments: list[Argument] = [Attribute(name=SIZES, default=labels[0], values=labels)]
    modes = modes_of(schema)
    if len(modes) > 1:
        arguments.append(Attribute(name=MODE, default=next(iter(modes)), values=tuple(modes)))
        called = {name: repr(how) for name, how in modes.items()}
        arguments.append(Derived(name=CALLED, expression=_by(MODE, called)))
    drawn = [name for name in last.state if _is_drawn(schema, name)]
    arguments += specs if problem.function else _of_model(schema, specs, drawn)
    if problem.function is not None and problem.function.backward:
        calls = (PLAIN_CALL, BACKWARD)
        arguments.append(Attribute(name=CALL, default=PLAIN_CALL, values=calls))
    rounding = ("truncated", "rounded") if last.products else ()
    reference = ProblemReference(session, schema, order)
    task = _task(
        problem,
        schema,
        arguments=tuple(arguments),
        outputs=tuple(_outputs(schema)),
        reference=reference,
        with_spread=reference.with_spread,
        tf32=tuple(ProblemReference(session, schema, order, how) for how in rounding),
        admissible=tuple(
            ProblemReference(session, schema, order, f"gpu-{salt}") for salt in range(GPU_DRAWS)
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
        narrowed={
            working: tuple(
                ProblemReference(session, schema, order, how) for how in narrowing(working)
            )
            for working in HALF
        },
        first={} if first is None else {SIZES: first.label, **_plain_call(task)},
        further={MODE: BEYOND} if len(modes) > 1 else {},
        random=bool(random),
        contract=contract(reference, random) if random else None,
    )


def _of_model(
    schema: Schema, specs: Sequence[Argument], drawn: Sequence[str]
) -> Iterator[Argument]:
    """Return what describes a model: its constructor's inputs, its own, and its weights."""
    built = _at({c.label: c.outline.init for c in schema.every})
    yield Derived(name=CONSTRUCTED, expression=built)
    yield from specs
    facts = {name: schema.state[name] for name in drawn}
    numbers = {n: f.constant for n, f in facts.items() if not f.random}
    filled = {n: number for n, number in numbers.items() if number is not None}
    yield Derived(name=FILLED, expression=repr(repr(filled)))
    yield from (_weight(schema, name) for name in drawn)


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
    """Return inputs and weights as the problem's file draws them."""

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
    arguments: tuple[Argument, ...],
    outputs: tuple[Output, ...],
    reference: Callable[..., Any],
    with_spread: WithSpread | None = None,
    tf32: tuple[Callable[..., Any], ...] = (),
    admissible: tuple[Callable[..., Any], ...] = (),
) -> Task:
    every = schema.every
    # The last two by cost are timed.
    perf = schema.choices if schema.timed is None else (*schema.choices, schema.timed)
    shown = _shown(arguments)
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
        flops=_at({c.label: c.outline.flops for c in every}) if every else "0",
        bytes=_moved(schema) if every else None,
        benchmark=Benchmark(dims={}, distribution="own"),
        tolerance={},
        terms=_at({c.label: c.outline.terms for c in every}) if every else None,
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
    )


def _shown(arguments: Sequence[Argument]) -> Iterator[str]:
    """Return the arguments of a call, a list once, without what describes a model."""
    names: dict[str, str] = {}
    for a in arguments:
        match a:
            case Attribute():
                shown = None if a.hidden else f"{a.name}={a.default!r}"
            case TensorSpec():
                shown = a.member_of or a.name
            case _:
                shown = None if a.name == CONSTRUCTED else a.name
        if shown is not None and "." not in a.name:
            names[shown] = a.name
    return iter(names)


def _at(values: Mapping[str, Any]) -> str:
    """Return an expression for the value of the chosen constants."""
    return _by(SIZES, values)


def _by(attribute: str, values: Mapping[str, Any]) -> str:
    return f"{dict(values)!r}[{attribute}]"


def _moved(schema: Schema) -> str:
    """Return the bytes of inputs, weights that the judge draws, and outputs, each once."""
    real, other = {}, {}
    due = [output.dtype for output in _outputs(schema)]
    for choice in schema.every:
        outline = choice.outline
        drawn = [n for n in outline.state if _is_drawn(schema, n)]
        moved = [("same", math.prod(outline.state[n])) for n in drawn]
        for value in outline.inputs:
            integers = value.dtype or "int64" if value.holds_integers else "same"
            moved.append(("bool" if value.dtype == "bool" else integers, value.elements))
        # Plain numbers among the outputs have no elements.
        moved += zip(due, (value.elements for value in outline.outputs), strict=False)
        real[choice.label] = sum(n for dtype, n in moved if dtype == "same")
        other[choice.label] = sum(n * itemsize(dtype) for dtype, n in moved if dtype != "same")
    return f"{_at(real)} * itemsize + {_at(other)}"


def _inputs(schema: Schema) -> list[Argument]:
    found: list[Argument] = []
    names = list(schema.choices[-1].outline.names)
    for i, facts in enumerate(schema.inputs):
        name = names[i] if i < len(names) else f"input_{i}"
        mine = {c.label: c.outline.inputs[i] for c in schema.every}
        name, dot, place = name.partition(".")
        group = name if dot else None
        name = member_name(name, int(place)) if dot else name
        if schema.choices[-1].outline.inputs[i].dtype is None:
            values = {label: ast.literal_eval(v.value or "None") for label, v in mine.items()}
            found.append(_number(schema, name, values))
            continue
        found.append(replace(_tensor(schema, i, name, mine, facts), member_of=group))
    return found


def _number(schema: Schema, name: str, values: Mapping[str, Any]) -> Argument:
    """Return a plain argument: it varies by itself unless it follows from the sizes."""
    default, *others = values.values()
    if name not in schema.numbers or any(v != default for v in others):
        return Derived(name=name, expression=_at(values))
    other = ast.literal_eval(schema.numbers[name])
    return Attribute(name=name, default=default, values=(default, other))


def _tensor(
    schema: Schema, i: int, name: str, mine: Mapping[str, Input], facts: InputFacts
) -> TensorSpec:
    dims, typical = _dims({label: v.shape for label, v in mine.items()}, schema)
    described = schema.choices[-1].outline.inputs[i]
    if described.dtype == "bool":
        return TensorSpec(name=name, dims=dims, kind="bool", typical=typical)
    if described.holds_integers:
        extents = {c.label: (c.extents[i] or 0) + 1 for c in schema.every if c.extents}
        return TensorSpec(
            name=name,
            dims=dims,
            kind="index",
            extent=_at(extents),
            typical=typical,
            stored=described.dtype or "int64",
            # What was seen of one set may lie beyond another's range.
            least=min(int(facts.low or 0), min(extents.values()) - 1),
        )
    if described.dtype != schema.working:
        # It keeps float32 beside narrower ones.
        return TensorSpec(name=name, dims=dims, kind="float32", typical=typical)
    # A state that begins as zeros is symmetric by accident where the example is square.
    square = all(v.shape[-1:] == v.shape[-2:-1] for v in mine.values())
    form = facts.form if square or facts.form not in _OF_SQUARES else None
    kind = _FORMS.get(form or "", "probability" if schema.positive else "real")
    return TensorSpec(name=name, dims=dims, kind=kind, typical=typical)


def _dims(
    shapes: Mapping[str, tuple[int, ...]], schema: Schema
) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Return the dims of a tensor, and those of the first choice if they vary."""
    if len(set(shapes.values())) == 1:
        return tuple(str(n) for n in next(iter(shapes.values()))), None
    return (f"*{_at(shapes)}",), tuple(str(n) for n in shapes[schema.choices[0].label])


def _is_drawn(schema: Schema, name: str) -> bool:
    """Return whether the judge chooses it: parameters, statistics, and random constructor values.

    A mask or a table of positions is the same in every model and not an input.
    """
    facts = schema.state[name]
    if not facts.dtype.startswith(("float", "bfloat")):
        return False
    parameters = schema.choices[-1].outline.parameters
    return name in parameters or facts.random or name.rpartition(".")[2] in _STATISTICS


def _weight(schema: Schema, name: str) -> TensorSpec:
    shapes = {c.label: c.outline.state[name] for c in schema.every}
    dims, typical = _dims(shapes, schema)
    facts = schema.state[name]
    rank = len(next(iter(shapes.values())))
    span = _STATISTICS.get(name.rpartition(".")[2])
    if span is None and facts.constant is not None:
        span = (facts.constant - _AROUND, facts.constant + _AROUND)
    elif span is None and rank < 2:
        size = min(max(2 * facts.size, _AROUND), 1.0)
        span = (-size, size)
    recurrent = name.rpartition(".")[2].startswith(_RECURRENT)
    return TensorSpec(
        name=f"{WEIGHTS}{name}",
        dims=dims,
        kind="weight",
        span=span,
        gain=1.0 if recurrent else _GAIN,
        typical=typical,
    )


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
        chance = replace(output, compare="contract", spared=("last tile zeroed", "gain"))
        if len(random) == len(modes):
            found.append(chance)
        elif random:
            found.append(replace(chance, when=f"{MODE} in {tuple(random)!r}"))
            found.append(replace(output, when=f"{MODE} not in {tuple(random)!r}"))
        else:
            found.append(output)
    updated = f"{MODE} == {UPDATED!r}"
    return [*found, *(Output(name=name, when=updated) for name in schema.updated)]
