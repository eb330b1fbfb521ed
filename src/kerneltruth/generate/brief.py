"""Describe a task to a model, from the public part of its declaration.

The brief shows attributes' defaults and the usual shapes only; what else is tried is known to the
judge alone. No case, seed or reference is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kerneltruth.generate.prompts import Prompts
from kerneltruth.tasks.arguments import (
    INDEX_KINDS,
    KINDS,
    ArgumentSpec,
    Attribute,
    Derived,
    Output,
    TensorSpec,
)
from kerneltruth.tasks.model import Task

_KIND = re.compile(r"^the case's dtype, ")
_ANY_VALUE = {"real": "", "weight": ""}


def brief_of(
    task: Task,
    prompts: Prompts,
    *,
    example: str = "",
    reference: str = "",
    device: str = "",
    shots: str = "",
) -> str:
    """Return the task in words.

    The example, the device and the worked kernels are already in words; a reference's source is
    shown only if the user wants it.
    """
    return prompts.fill(
        "task",
        name=task.name,
        entry=task.entry,
        description=task.description,
        signature=signature_of(task),
        arguments="\n".join(f"- {line}" for line in _arguments(task)),
        returns=_returns(task),
        dtypes=", ".join(dict.fromkeys((*task.dtypes, *task.promised_dtypes))),
        sizes=_sizes(task),
        timed=_timed(task),
        example=example,
        reference=prompts.fill("reference", source=reference) if reference else "",
        device=device,
        shots=shots,
    )


def signature_of(task: Task) -> str:
    """Return the entry's signature as Python."""
    written = (n if d is None else f"{n}={d}" for n, d in _parameters(task).items())
    return f"def {task.entry}({', '.join(written)}):"


def _parameters(task: Task) -> dict[str, str | None]:
    by_name = {a.name: a for a in task.arguments}
    found: dict[str, str | None] = {}
    bare = False
    # From the end, since a parameter before one without a default cannot have a default.
    for name in reversed(tuple(name for name in task.call_order() if not name.startswith("_"))):
        default = _default(by_name.get(name))
        bare = bare or default is None
        found[name] = None if bare else default
    return dict(reversed(found.items()))


def _default(argument: ArgumentSpec | None) -> str | None:
    match argument:
        case Attribute(default=default):
            return repr(default)
        case TensorSpec(optional=True):
            return "None"
        case _:
            return None


def _arguments(task: Task) -> Iterator[str]:
    lists = task.lists()
    hidden = _hidden(task)
    by_name = {a.name: a for a in task.arguments}
    for name, written in _parameters(task).items():
        if name in lists:
            members = "; ".join(f"{m}, {_tensor(by_name[m], hidden)}" for m in lists[name])
            yield f"`{name}`: a list of tensors: {members}"
            continue
        match by_name[name]:
            case TensorSpec() as spec:
                yield f"`{name}`: {_tensor(spec, hidden)}"
            case Attribute(default=default):
                kind = "any of its values" if default is None else type(default).__name__
                yield f"`{name}`: {kind}" + (f", {written} by default" if written else "")
            case Derived():
                yield f"`{name}`: follows from the shapes"


def _hidden(task: Task) -> frozenset[str]:
    """Return the names that only a declaration knows."""
    return frozenset((*(a.name for a in task.attributes if a.hidden), *task.where))


def _names(expression: str) -> set[str]:
    return set(re.findall(r"\w+", expression))


def _tensor(spec: ArgumentSpec, hidden: frozenset[str]) -> str:
    assert isinstance(spec, TensorSpec)
    shape = ", ".join(spec.usual) + ("," if len(spec.usual) == 1 else "")
    words = f"tensor of shape ({shape})"
    if any(d.startswith("*") for d in spec.dims):
        words = f"tensor, usually of shape ({shape})"
    kind = _ANY_VALUE.get(spec.kind, KINDS[spec.kind])
    if spec.kind in INDEX_KINDS:
        extent = "the size it indexes" if hidden & _names(str(spec.extent)) else str(spec.extent)
        kind = kind.partition(": ")[0].replace("extent", extent)
    kind = _KIND.sub("", kind).partition(": `")[0]
    return words + (f"; {kind}" if kind else "") + ("; may be None" if spec.optional else "")


def _returns(task: Task) -> str:
    # An attribute chooses among several outputs of one name.
    outputs = {o.name: o for o in task.outputs}.values()
    described = [_output(o) for o in outputs]
    if task.mutates and {o.name for o in task.outputs} <= set(task.mutates):
        return f"nothing that counts: it writes {', '.join(task.mutates)} in place"
    if len(described) == 1:
        return f"one tensor, {described[0]}"
    return "a tuple: " + ", ".join(
        f"{o.name}, {d}" for o, d in zip(outputs, described, strict=True)
    )


def _output(output: Output) -> str:
    match output.dtype:
        case "same" | "float" | "real":
            return "of the input's data type"
        case "complex":
            return "complex64"
        case dtype:
            return dtype


def _sizes(task: Task) -> str:
    """State the allowed sizes and the constraints between them, without hidden names."""
    fixed = [d for d in task.dims if d.low == d.high]
    bounds = [f"{d.symbol} = {d.low}" for d in fixed]
    bounds += [f"{d.symbol} >= {d.low}" for d in task.dims if d not in fixed]
    bounds += [
        f"{d.symbol} <= {d.high}" for d in task.dims if d.high is not None and d not in fixed
    ]
    bounds += [c for c in task.constraints if not _hidden(task) & _names(c)]
    return f"Sizes: {', '.join(bounds)}." if bounds else ""


def _timed(task: Task) -> str:
    shown = [[f"{k}={v}" for k, v in shape.items() if not k.startswith("_")] for shape in task.perf]
    shapes = [f"({', '.join(words)})" for words in shown if words]
    return f"It is timed at {', '.join(shapes)}." if shapes else ""
