"""Definitions: what a kernel must compute, as a data set states it. Read here, never run here."""

from __future__ import annotations

import ast
import hashlib
import keyword
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerneltruth.suites.flashinfer.documents import (
    Malformed,
    field,
    files,
    optional,
)
from kerneltruth.suites.lines import json_object
from kerneltruth.suites.submission import MAX_SOURCE_BYTES, Broken

FOLDER = "definitions"
FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int64", "int32", "int16", "int8")
# Older files write the first of these for the second.
_SYNONYMS = {"float8_e4m3": "float8_e4m3fn"}
DTYPES = (*FLOATS, *INTEGERS, "bool", "float4_e2m1")
_ALLOWED = (
    ast.Expression,
    ast.BoolOp,
    ast.boolop,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.FloorDiv,
    ast.Mod,
    ast.Div,
    ast.UnaryOp,
    ast.unaryop,
    ast.Compare,
    ast.cmpop,
    ast.Name,
    ast.Load,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """An input or output; `shape` is None for a plain number."""

    name: str
    shape: tuple[str, ...] | None
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A definition as its file states it.

    Attributes:
        axes: sizes by name; None if workloads choose it.
        constraints: those on axes alone.
        data_constraints: those on the contents of inputs; they are not evaluated.
        says: its description.
    """

    name: str
    op_type: str
    axes: Mapping[str, int | None]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    reference: str
    constraints: tuple[str, ...] = ()
    data_constraints: tuple[str, ...] = ()
    says: str = ""

    @property
    def entry(self) -> str:
        """The name of the function that represents a solution in its joined module."""
        return "solution_of_" + "".join(c if c.isalnum() else "_" for c in self.name)

    @property
    def sha256(self) -> str:
        """Return the hash of everything that a verdict depends on."""
        parts = (self.name, dict(self.axes), self.inputs, self.outputs, self.constraints)
        text = repr((*parts, self.reference))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_definitions(root: Path) -> tuple[dict[str, Definition], list[Broken]]:
    """Return the definitions of a data set by name, and the files without one, with reasons."""
    found: dict[str, Definition] = {}
    broken: list[Broken] = []
    for path, origin in files(root / FOLDER, "*.json"):
        data = json_object(path, origin)
        if isinstance(data, Broken):
            broken.append(data)
            continue
        try:
            definition = definition_of(data)
        except Malformed as error:
            broken.append(Broken(origin=origin, reason=str(error)))
            continue
        if definition.name in found:
            reason = f"the definition {definition.name!r} is in another file too"
            broken.append(Broken(origin=origin, reason=reason))
            continue
        found[definition.name] = definition
    return found, broken


def definition_of(data: Mapping[str, object]) -> Definition:
    """Parse the definition in an object.

    Raises:
        Malformed: it does not follow the schema.
    """
    axes = {n: _axis(n, a) for n, a in field(data, "axes", dict).items()}
    inputs = _tensors(data, "inputs", axes)
    rules = optional(data, "constraints", list, [])
    if not all(isinstance(rule, str) for rule in rules):
        raise Malformed("`constraints` must be texts")
    of_axes = [rule for rule in rules if _speaks_of(rule, axes)]
    reference = field(data, "reference", str)
    _check_reference(reference)
    name = field(data, "name", str)
    if not name or "/" in name:
        raise Malformed(f"`name` must be a word without a slash, got {name!r}")
    return Definition(
        name=name,
        op_type=str(data.get("op_type") or data.get("type") or "unknown"),
        axes=axes,
        inputs=inputs,
        outputs=_tensors(data, "outputs", axes),
        reference=reference,
        constraints=tuple(of_axes),
        data_constraints=tuple(rule for rule in rules if rule not in of_axes),
        says=" ".join(optional(data, "description", str, "").split()),
    )


def _name(name: str, what: str) -> str:
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise Malformed(f"{what} {name!r} is not a name")
    return name


def _axis(name: str, data: Any) -> int | None:
    _name(name, "the axis")
    if not isinstance(data, dict):
        raise Malformed(f"the axis {name!r} must be an object")
    kind = field(data, "type", str)
    if kind == "var":
        return None
    if kind != "const":
        raise Malformed(f"the axis {name!r} has the type {kind!r}; must be const or var")
    value = field(data, "value", int)
    if value < 1:
        raise Malformed(f"the axis {name!r} has the size {value}")
    return value


def _tensors(
    data: Mapping[str, object], key: str, axes: Mapping[str, int | None]
) -> tuple[Tensor, ...]:
    found = tuple(_tensor(key, n, t, axes) for n, t in field(data, key, dict).items())
    if not found:
        raise Malformed(f"`{key}` is empty")
    return found


def _tensor(key: str, name: str, data: Any, axes: Mapping[str, int | None]) -> Tensor:
    where = f"{key}.{_name(name, key)}"
    if not isinstance(data, dict):
        raise Malformed(f"{where} must be an object")
    dtype = field(data, "dtype", str)
    dtype = _SYNONYMS.get(dtype, dtype)
    if dtype not in DTYPES:
        raise Malformed(f"{where} has the dtype {dtype!r}; must be one of {', '.join(DTYPES)}")
    if "shape" not in data:
        raise Malformed(f"{where} has no `shape`")
    shape = data["shape"]
    if shape is None:
        return Tensor(name=name, shape=None, dtype=dtype)
    if not isinstance(shape, list):
        raise Malformed(f"{where}: `shape` must be an array of axes, or null")
    strangers = [a for a in shape if a not in axes]
    if strangers:
        raise Malformed(f"{where} uses the axis {strangers[0]!r}, which is not in `axes`")
    return Tensor(name=name, shape=tuple(shape), dtype=dtype)


def _speaks_of(rule: str, axes: Mapping[str, int | None]) -> bool:
    """Return whether a rule is only arithmetic of axes, and so safe to evaluate.

    Raises:
        Malformed: it is not an expression.
    """
    try:
        tree = ast.parse(rule.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Malformed(f"the constraint {rule!r} is not an expression: {error}") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if type(node.value) is not int:
                return False
        elif not isinstance(node, _ALLOWED) or (isinstance(node, ast.Name) and node.id not in axes):
            return False
    return True


def _check_reference(source: str) -> None:
    if len(source) > MAX_SOURCE_BYTES:
        raise Malformed(f"`reference` is longer than {MAX_SOURCE_BYTES} bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Malformed(f"`reference` is not Python: {error}") from error
    if not any(isinstance(s, ast.FunctionDef) and s.name == "run" for s in tree.body):
        raise Malformed("`reference` does not define a function `run`")
