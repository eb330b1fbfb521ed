"""Turn axes into dims: which are free, the role of each, and the sizes worth trying."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from kerneltruth.clock.roofline.work import itemsize
from kerneltruth.suites.flashinfer.definition import Definition
from kerneltruth.suites.flashinfer.workload import Workload
from kerneltruth.tasks.spec import Benchmark, Dim, Role

# Limits the smallest case's inputs and outputs together: drawing and moving them takes several
# times their memory.
MOST_ELEMENTS = 2**22
# A tensor grows with its var axes up to this size, or to a few rows if one row is large.
_GROWN, _LEAST_HIGH, _MOST_HIGH = 2**20, 8, 2**14
_EQUATION = re.compile(r"^\s*(\w+)\s*==\s*([^=<>!]+)$")
_WORD = re.compile(r"[A-Za-z_]\w*")


def used_axes(definition: Definition) -> list[str]:
    """Return the axes that occur in a shape or a constraint, or that a number is named after."""
    shapes = {a for t in (*definition.inputs, *definition.outputs) for a in t.shape or ()}
    numbers = {t.name for t in definition.inputs if t.shape is None}
    ruled = " ".join(definition.constraints)
    return [a for a in definition.axes if a in shapes or a in numbers or a in ruled]


def solved_by(rule: str) -> tuple[str, str]:
    """Return the axis that a rule `axis == expression` defines, and how; otherwise two blanks."""
    found = _EQUATION.match(rule)
    return (found[1], f"({found[2].strip()})") if found else ("", "")


def solved_axes(definition: Definition) -> dict[str, str]:
    """Return the var axes that constraints define by others: their sizes need no search."""
    solved: dict[str, str] = {}
    taken: set[str] = set()
    for rule in definition.constraints:
        axis, expression = solved_by(rule)
        words = set(_WORD.findall(expression))
        free = axis in definition.axes and definition.axes[axis] is None
        if free and not words & {axis, *solved} and axis not in taken | set(solved):
            solved[axis] = expression
            taken |= words
    return solved


def put_in(rule: str, solved: Mapping[str, str]) -> str:
    """Substitute solved axes in a rule."""
    return _WORD.sub(lambda word: solved.get(word[0], word[0]), f"({rule.strip()})")


def roles_of(definition: Definition, solved: Mapping[str, str] | None = None) -> dict[str, Role]:
    """Return the role of each axis, as far as shapes tell.

    An axis that no output has is summed over: contracted if two inputs have it. Without such axes,
    an output's last axis may also be summed over, as in a norm or a softmax.
    """
    shapes = [t.shape for t in definition.inputs if t.shape]
    outputs = [t.shape for t in definition.outputs if t.shape]
    words = (_WORD.findall((solved or {}).get(a, a)) for shape in outputs for a in shape)
    kept = {axis for found in words for axis in found}
    lasts = {shape[-1] for shape in outputs if len(shape) > 1}
    roles: dict[str, Role] = {}
    for axis, size in definition.axes.items():
        having = sum(axis in shape for shape in shapes)
        if axis not in kept:
            roles[axis] = "contracted" if having > 1 else "reduced"
        elif size is None:
            roles[axis] = "batch"
        else:
            roles[axis] = "channel"
    if "contracted" not in roles.values():
        for axis in lasts:
            if any(len(shape) > 1 and shape[-1] == axis for shape in shapes):
                roles[axis] = "reduced"
    return roles


def dim_of(definition: Definition, axis: str, role: Role) -> Dim:
    """Return the dim of a free axis: one size if it is const, else up to what is affordable."""
    size = definition.axes[axis]
    if size is not None:
        return Dim(symbol=axis, role=role, low=size, high=size)
    rows = max(
        (
            math.prod(definition.axes[a] or 1 for a in t.shape)
            for t in (*definition.inputs, *definition.outputs)
            if t.shape and axis in t.shape
        ),
        default=1,
    )
    high = min(max(_GROWN // rows, _LEAST_HIGH), _MOST_HIGH)
    return Dim(symbol=axis, role=role, low=1, high=high)


def flops_of(roles: Mapping[str, Role], used: Sequence[str]) -> str:
    """Estimate the work, which no definition states: products by all axes, others by elements."""
    if "contracted" in roles.values():
        return "*".join(["2", *used])
    return "*".join(used) or "1"


def bytes_of(definition: Definition, working: str, solved: Mapping[str, str]) -> str:
    """Count each input and each output once."""
    moved = []
    for tensor in (*definition.inputs, *definition.outputs):
        if tensor.shape is not None:
            size = "itemsize" if tensor.dtype == working else str(itemsize(tensor.dtype))
            moved.append("*".join([*(f"({solved.get(a, a)})" for a in tensor.shape), size]))
    return " + ".join(moved)


def bytes_of_forms(
    definition: Definition, working: str, forms: Mapping[str, Workload], name: str
) -> str:
    """Return the same if each form has its own sizes; `name` is the form's."""
    real, other = {}, {}
    for label, workload in forms.items():
        moved = [
            (t.dtype, math.prod(workload.shape(t)))
            for t in (*definition.inputs, *definition.outputs)
            if t.shape is not None
        ]
        real[label] = sum(n for dtype, n in moved if dtype == working)
        other[label] = sum(n * itemsize(dtype) for dtype, n in moved if dtype != working)
    return f"{real!r}[{name}] * itemsize + {other!r}[{name}]"


def benchmark_of(
    definition: Definition, workloads: Sequence[Workload], dims: Sequence[Dim]
) -> Benchmark:
    """Return the largest workload that is still quick to draw, with the peer's normal values."""
    fitting = [w for w in workloads if w.elements(definition) <= MOST_ELEMENTS]
    best = max(fitting, key=lambda w: w.elements(definition), default=None)
    if best is not None:
        sizes = {d.symbol: best.axes[d.symbol] for d in dims}
    else:
        sizes = {d.symbol: min(128, d.high or 128) if d.low == 1 else d.low for d in dims}
    return Benchmark(dims=sizes, distribution="normal")
