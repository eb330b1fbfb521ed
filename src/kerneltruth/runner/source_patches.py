"""Name what a source replaces in PyTorch, in the judge or in Python itself; nothing runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kerneltruth.runner.source_numbers import nodes_of

_WATCHED = frozenset({"torch", "kerneltruth", "builtins", "time"})
# Settings, which a kernel may choose.
_SETTINGS = (
    "torch.backends.",
    "torch._dynamo.config.",
    "torch._inductor.config.",
    "torch._functorch.config.",
)
_LONGEST = 80
_SETTERS = frozenset({"setattr", "delattr"})


def patches(source: str) -> tuple[str, ...]:
    """Return the names that a source assigns to, such as `torch.cuda.Event (line 3)`, in order.

    Only names of modules that the source imports: a hint, since names can be assembled.
    """
    nodes = nodes_of(source)
    modules = dict(pair for node in nodes for pair in _imported(node))
    found = [(node.lineno, name) for node, name in _assigned(nodes, modules) if _is_watched(name)]
    return tuple(f"{name[:_LONGEST]} (line {line})" for line, name in sorted(set(found)))


def _is_watched(name: str) -> bool:
    if name == "sys.modules":
        return True
    return name.partition(".")[0] in _WATCHED and not name.startswith(_SETTINGS)


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that an import binds, and what they stand for."""
    match node:
        case ast.Import(names=names):
            for each in names:
                top = each.name.partition(".")[0]
                yield (each.asname, each.name) if each.asname else (top, top)
        case ast.ImportFrom(module=str(module), names=names, level=0):
            for each in names:
                yield each.asname or each.name, f"{module}.{each.name}"


def _assigned(
    nodes: tuple[ast.AST, ...], modules: dict[str, str]
) -> Iterator[tuple[ast.expr, str]]:
    """The attributes and entries that are set or deleted, by their full names."""
    for node in nodes:
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                name = _full_name(node, modules)
            case ast.Subscript(value=ast.Attribute() as owner, ctx=ast.Store() | ast.Del()):
                name = _full_name(owner, modules)
                if name is None or not name.endswith((".__dict__", "sys.modules")):
                    continue
            case ast.Call(func=ast.Name(id=called), args=[owner, attribute, *_]):
                owned = _full_name(owner, modules) if called in _SETTERS else None
                name = None if owned is None else f"{owned}.{_text(attribute)}"
            case _:
                continue
        if name is not None and isinstance(node, ast.expr):
            yield node, name


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
    return "..."


def _full_name(node: ast.expr, modules: dict[str, str]) -> str | None:
    """The name of a module's part, such as `torch.cuda.Event`; None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in modules:
        return None
    return ".".join([modules[node.id], *reversed(parts)])
