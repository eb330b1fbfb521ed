"""The arguments of a problem's task: drawn or chosen by a case, or derived from it."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from kerneltruth.documents.case import SIZES
from kerneltruth.runner.child.models import CALLED, CONSTRUCTED, FILLED, NAMED, WEIGHTS
from kerneltruth.suites.kernelbench.problem import Problem, constructor_parameters
from kerneltruth.suites.kernelbench.reference import member_name, modes_of
from kerneltruth.suites.kernelbench.schema import Input, InputFacts, Schema
from kerneltruth.tasks.model import BACKWARD, CALL, PLAIN_CALL
from kerneltruth.tasks.spec import KEEPING_KINDS, ArgumentSpec, Attribute, Derived, TensorSpec

# The hidden attribute that selects how the model is called; `SIZES` selects its constants.
MODE = "_mode"

_FORMS = {
    **{kind: kind for kind in ("sign", *KEEPING_KINDS)},
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
# The largest deviation of a weight from the one number with which a constructor fills it.
_AROUND = 0.25


def arguments_of(
    problem: Problem, schema: Schema, specs: Sequence[ArgumentSpec], drawn: Sequence[str]
) -> Iterator[ArgumentSpec]:
    """Return all arguments: those that choose sizes and mode, then the call's own.

    Args:
        problem: as its file states it.
        schema: of the problem.
        specs: its inputs, by `inputs_of`.
        drawn: the weights that the judge chooses.
    """
    labels = tuple(c.label for c in (*schema.choices, *schema.long))
    yield Attribute(name=SIZES, default=labels[0], values=labels)
    modes = modes_of(schema)
    if len(modes) > 1:
        yield Attribute(name=MODE, default=next(iter(modes)), values=tuple(modes))
        called = {name: repr(asdict(how)) for name, how in modes.items()}
        yield Derived(name=CALLED, expression=_by(MODE, called))
    yield from specs if problem.function else _of_model(problem, schema, specs, drawn)
    if problem.function is not None and problem.function.backward:
        yield Attribute(name=CALL, default=PLAIN_CALL, values=(PLAIN_CALL, BACKWARD))


def _of_model(
    problem: Problem, schema: Schema, specs: Sequence[ArgumentSpec], drawn: Sequence[str]
) -> Iterator[ArgumentSpec]:
    """Return arguments that describe a model: its constructor's inputs, its own, its weights."""
    built = by_sizes({c.label: c.outline.init for c in schema.every})
    yield Derived(name=CONSTRUCTED, expression=built)
    yield from specs
    facts = {name: schema.state[name] for name in drawn}
    numbers = {n: f.constant for n, f in facts.items() if not f.random}
    filled = {n: number for n, number in numbers.items() if number is not None}
    yield Derived(name=FILLED, expression=repr(repr(filled)))
    yield Derived(name=NAMED, expression=repr(repr(constructor_parameters(problem.source))))
    yield from (_weight(schema, name) for name in drawn)


def shown_in_call(arguments: Sequence[ArgumentSpec]) -> Iterator[str]:
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


def by_sizes(values: Mapping[str, Any]) -> str:
    """Return an expression for the value of the chosen constants."""
    return _by(SIZES, values)


def _by(attribute: str, values: Mapping[str, Any]) -> str:
    return f"{dict(values)!r}[{attribute}]"


def inputs_of(schema: Schema) -> list[ArgumentSpec]:
    """Return what a call gets: tensors, lists' members one by one, and numbers."""
    found: list[ArgumentSpec] = []
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
        made = _tensor(schema, i, name, mine, facts)
        lies = replace(made, layout=facts.layout, example=facts.example)
        found.append(replace(lies, member_of=group))
    return found


def _number(schema: Schema, name: str, values: Mapping[str, Any]) -> ArgumentSpec:
    """Return a plain argument: it varies by itself unless it follows from the sizes."""
    default, *others = values.values()
    if name not in schema.numbers or any(v != default for v in others):
        return Derived(name=name, expression=by_sizes(values))
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
            extent=by_sizes(extents),
            typical=typical,
            stored=described.dtype or "int64",
            # Values seen in one set may lie beyond another's range.
            least=min(int(facts.low or 0), min(extents.values()) - 1),
        )
    # Only the narrowest real numbers follow the case's dtype.
    keeps = None if described.dtype == schema.working else described.dtype
    if keeps and facts.form not in KEEPING_KINDS:
        return TensorSpec(name=name, dims=dims, kind=keeps, typical=typical)
    # A state that begins as zeros is symmetric by accident where the example is square.
    square = all(v.shape[-1:] == v.shape[-2:-1] for v in mine.values())
    form = facts.form if square or facts.form not in _OF_SQUARES else None
    kind = _FORMS.get(form or "", "probability" if schema.positive else "real")
    return TensorSpec(name=name, dims=dims, kind=kind, typical=typical, keeps=keeps)


def _dims(
    shapes: Mapping[str, tuple[int, ...]], schema: Schema
) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Return the dims of a tensor, and those of the first choice if they vary."""
    if len(set(shapes.values())) == 1:
        return tuple(str(n) for n in next(iter(shapes.values()))), None
    return (f"*{by_sizes(shapes)}",), tuple(str(n) for n in shapes[schema.choices[0].label])


def is_drawn(schema: Schema, name: str) -> bool:
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
