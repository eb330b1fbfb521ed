"""Measure how complex a task's reference is: its lines, operators, parameters, flops and more.

Read from the declaration and the source of the reference, with the functions of its own package
that it calls; nothing runs. A foreign task's reference runs in a child, and its source is not only
torch operators: only parameters and flops are known for it.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any

from kerneltruth.documents.facts import ReferenceRecord
from kerneltruth.runs.tasks_file import read_tasks, write_tasks
from kerneltruth.tasks.expressions import evaluate
from kerneltruth.tasks.registry import find, opened_tasks
from kerneltruth.tasks.spec import Task

_OWN = "kerneltruth.tasks"
_BUILTIN = frozenset(dir(builtins))
FunctionNode = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceFacts:
    """Numbers of one reference; None if unknown.

    Attributes:
        lines: of code, without blank ones, comments and docstrings.
        operators: calls, and arithmetic and comparison operators.
        parameters: of the call: tensors, lists of them, and attributes.
        flops: at the shape of a one-shape benchmark; 0 if it only moves data.
        maintainability: radon's index of the code, from 0 to 100 at best; unknown without radon,
            which comes with the extra `study`.
    """

    lines: int | None
    operators: int | None
    maintainability: float | None
    parameters: int
    flops: float | None


def facts_of(task: Task) -> ReferenceFacts:
    """Return the facts of one task's reference."""
    code = None if task.foreign else _code_of(task.reference)
    return ReferenceFacts(
        lines=None if code is None else code.lines,
        operators=None if code is None else code.operators,
        maintainability=None if code is None else code.maintainability,
        parameters=len(task.call_order()),
        flops=_flops(task),
    )


def store_facts(run: Path, tasks: Iterable[str]) -> None:
    """Store the facts of these tasks in a run, beside those that it has.

    Tasks that are not made yet are left out: making one may take seconds, and their references are
    not only torch operators.
    """
    known = read_tasks(run)
    missing = {t for t in tasks if t not in known and _is_made(t)}
    if not missing:
        return
    for task in sorted(missing):
        own = find(task)
        facts = {name: v for name, v in asdict(facts_of(own)).items() if v is not None}
        known[task] = ReferenceRecord(**facts, dtypes=tuple(own.dtypes))
    write_tasks(run, known)


def _is_made(task: str) -> bool:
    suite, _, name = task.partition("/")
    known = opened_tasks(suite)
    return known is None or known.listed()[name].made is not None


def _flops(task: Task) -> float | None:
    scope = task.scope(task.benchmark.dims, task.scalars(task.benchmark.dims, {}))
    try:
        return float(evaluate(task.flops, scope))
    except (ArithmeticError, KeyError, NameError, TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class _Code:
    lines: int
    operators: int
    maintainability: float | None


def _code_of(reference: Callable[..., Any]) -> _Code | None:
    """Measure the code of a reference and its helpers, each helper once."""
    function = _plain(reference)
    if function is None:
        # torch's own function, passed as it is.
        return _Code(1, 1, None)
    seen: dict[FunctionType, FunctionNode] = {}
    waiting = [function]
    while waiting:
        now = waiting.pop()
        if now in seen:
            continue
        node = _node_of(now)
        if node is None:
            return None
        seen[now] = node
        waiting += _helpers(now, node)
    helpers = {f.__name__ for f in seen}
    return _Code(
        sum(_lines(node) for node in seen.values()),
        sum(_operators(node, helpers) for node in seen.values()),
        _maintainability(seen.values()),
    )


def _maintainability(nodes: Iterable[FunctionNode]) -> float | None:
    """The index as Visual Studio scales it, without radon's reward for comments."""
    try:
        metrics = importlib.import_module("radon.metrics")
    except ImportError:
        return None
    text = "\n\n".join(ast.unparse(node) for node in nodes)
    return round(float(metrics.mi_visit(text, multi=False)), 2)


def _plain(reference: Any) -> FunctionType | None:
    while isinstance(reference, partial):
        reference = reference.func
    return reference if isinstance(reference, FunctionType) else None


@lru_cache(maxsize=64)
def _module(path: str) -> ast.Module:
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


def _node_of(function: FunctionType) -> FunctionNode | None:
    """Find a function in its file; of lambdas in one line, the one with its parameters."""
    path = inspect.getsourcefile(function)
    if path is None:
        return None
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    line = function.__code__.co_firstlineno
    for node in ast.walk(_module(path)):
        if not isinstance(node, FunctionNode):
            continue
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        first = min([node.lineno, *(d.lineno for d in decorators)])
        if first == line and tuple(a.arg for a in node.args.args) == names:
            return node
    return None


def _helpers(function: FunctionType, node: FunctionNode) -> Iterator[FunctionType]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            found = _plain(function.__globals__.get(inner.id))
            if found is not None and found.__module__.startswith(_OWN):
                yield found


def _lines(node: FunctionNode) -> int:
    """Return the lines with code of the function: those on which some node begins or ends."""
    body = [node.body] if isinstance(node, ast.Lambda) else _without_docstring(node.body)
    found = {node.lineno}
    for statement in body:
        for inner in ast.walk(statement):
            if isinstance(inner, ast.expr | ast.stmt) and inner.end_lineno is not None:
                found |= {inner.lineno, inner.end_lineno}
    return len(found)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_text else body


def _operators(node: FunctionNode, helpers: set[str]) -> int:
    count = 0
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Name(id=name)):
                count += name not in _BUILTIN and name not in helpers
            case ast.Call():
                count += 1
            case ast.BinOp() | ast.AugAssign():
                count += 1
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand):
                count += not isinstance(operand, ast.Constant)
            case ast.Compare(ops=ops):
                count += sum(
                    not isinstance(o, ast.Is | ast.IsNot | ast.In | ast.NotIn) for o in ops
                )
            case _:
                pass
    return count
