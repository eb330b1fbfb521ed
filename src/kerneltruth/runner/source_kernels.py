"""Take the work out of a source's Triton kernels: the judge edits the text, and nothing runs."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from kerneltruth.runner.bundle import bundle_in, parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptiedSource:
    """A source whose kernels do nothing when they are launched, and the names of these kernels."""

    text: str
    kernels: frozenset[str]


def emptied(source: str) -> EmptiedSource | None:
    """Return the source with an empty body for each function below a decorator named `jit`.

    None where there is none, or where the source is of several files or cannot be parsed.
    """
    if bundle_in(source) is not None:
        return None
    try:
        # It refuses a text that is too long; others read its tree, which must stay as it is.
        parsed(source)
        tree = ast.parse(source)
        found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _is_kernel(n)]
        for kernel in found:
            kernel.body = [ast.Pass()]
        text = ast.unparse(ast.fix_missing_locations(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return EmptiedSource(text=text, kernels=frozenset(n.name for n in found)) if found else None


def _is_kernel(function: ast.FunctionDef) -> bool:
    for decorator in function.decorator_list:
        maker = decorator.func if isinstance(decorator, ast.Call) else decorator
        if getattr(maker, "attr", getattr(maker, "id", None)) == "jit":
            return True
    return False
