"""Tell whether a candidate's source may keep state between calls; nothing runs."""

from __future__ import annotations

import ast

from kerneltruth.runner.source_numbers import nodes_of

_CACHES = frozenset({"cache", "lru_cache", "cached_property"})
_CONTAINERS = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "deque", "Counter"})
# An instance is made for each call, and a context for each pair of forward and backward.
_OF_ONE_CALL = frozenset({"self", "ctx"})


def may_keep_state(source: str) -> bool:
    """Return whether a call can leave state behind, judging by the text alone.

    True for names that functions rebind outside of themselves, cached functions, containers of the
    module or of a default argument, and attributes set on anything but an instance.
    """
    nodes = nodes_of(source)
    module = next((n for n in nodes if isinstance(n, ast.Module)), None)
    assigned = module.body if module is not None else []
    return any(map(_is_kept, nodes)) or any(
        isinstance(each, ast.Assign | ast.AnnAssign) and _is_container(each.value)
        for each in assigned
    )


def _is_kept(node: ast.AST) -> bool:
    match node:
        case ast.Global() | ast.Nonlocal():
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name, ctx=ast.Load()) if name in _CACHES:
            return True
        case ast.Attribute(value=ast.Name(id=owner), ctx=ast.Store()):
            return owner not in _OF_ONE_CALL
        case ast.arguments(defaults=defaults, kw_defaults=others):
            return any(_is_container(default) for default in (*defaults, *others))
    return False


def _is_container(node: ast.expr | None) -> bool:
    match node:
        case ast.Dict() | ast.List() | ast.Set() | ast.DictComp() | ast.ListComp() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _CONTAINERS
    return False
