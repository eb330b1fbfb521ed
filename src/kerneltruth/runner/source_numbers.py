"""Find numbers in a candidate's source that make sizes around them worth trying; nothing runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice

from kerneltruth.runner.bundle import parsed

_BLOCK_NAME = re.compile(r"BLOCK|TILE|CHUNK|^NUM_(?!WARPS|STAGES|CTAS)", re.IGNORECASE)
_BLOCK_RANGE = range(2, 65537)
# Smaller sizes are tried anyway.
_THRESHOLDS = range(8, 2**20 + 1)
_MOST_THRESHOLDS = 6
# An expression may have this many values, of this size; products of more would never end.
_MOST_VALUES = 64
_LARGEST = 2**32
# Parts that say something of the node that holds them, and nothing by themselves.
_MARKS = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
_VALUED = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Call, ast.IfExp, ast.BinOp)
# The numbers from which on a conversion to the dtype loses or wraps an index.
_EXACT_UP_TO = {
    "int8": 2**7,
    "uint8": 2**8,
    "bfloat16": 2**8,
    "float16": 2**11,
    "int16": 2**15,
    "uint16": 2**16,
}


def block_sizes(source: str) -> tuple[int, ...]:
    """Return tile sizes in the source: keyword arguments, defaults, assignments, dict entries.

    Empty when nothing is found or the source is not Python.
    """
    integers = _integers(source)
    found = {
        number
        for name, value in _bound(source)
        if _BLOCK_NAME.search(name)
        for number in integers.get(value, ())
    }
    return tuple(sorted(n for n in found if n in _BLOCK_RANGE))


def thresholds(source: str) -> tuple[int, ...]:
    """Return at most six sizes at which the source may branch differently.

    They are the numbers that its conditions and asserts compare with, the arguments of `min` and
    `max`, and the limits of narrow dtypes that it converts indices to.
    """
    nodes, integers = nodes_of(source), _integers(source)
    names: dict[str, set[int]] = {}
    for name, value in _bound(source):
        names.setdefault(name, set()).update(integers.get(value, ()))
    compared: set[int] = set()
    for part in _compared(nodes):
        compared |= names.pop(part.id, set()) if isinstance(part, ast.Name) else set()
        compared.update(integers.get(part, ()))
    narrowed = {n for node in nodes for n in _narrowed(node)}
    found = sorted(n for n in compared if n in _THRESHOLDS)
    found += sorted(narrowed - compared)
    return tuple(found[:_MOST_THRESHOLDS])


# Each function here examines one whole source.
@lru_cache(maxsize=1)
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Return the nodes of a source, each before what it holds; none if it cannot be parsed.

    Operators and contexts such as `ast.Load` are left out.
    """
    try:
        tree = parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        for name in node._fields:
            part = getattr(node, name, None)
            parts = part if isinstance(part, list) else (part,)
            for each in parts:
                if isinstance(each, ast.AST) and not isinstance(each, _MARKS):
                    nodes.append(each)
    return tuple(nodes)


@lru_cache(maxsize=1)
def _bound(source: str) -> tuple[tuple[str, ast.expr], ...]:
    """Return each name that a source binds to an expression, with that expression."""
    return tuple(pair for node in nodes_of(source) for pair in _bindings(node))


def _compared(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """Return what conditions compare, and what `min` and `max` choose from."""
    in_tests: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            in_tests.add(node.test)
        if node in in_tests:
            in_tests.update(ast.iter_child_nodes(node))
        match node:
            case ast.Compare(left=left, comparators=others) if node in in_tests:
                yield from (left, *others)
            case ast.Call(func=ast.Name(id="min" | "max"), args=arguments):
                yield from arguments


def _narrowed(node: ast.AST) -> Iterator[int]:
    """Return how far a dtype counts that the node converts to: `x.to(tl.float16)`, `x.half()`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="to"), args=[ast.Attribute(attr=dtype), *_]):
            if dtype in _EXACT_UP_TO:
                yield _EXACT_UP_TO[dtype]
        case ast.Call(func=ast.Attribute(attr="half"), args=[]):
            yield _EXACT_UP_TO["float16"]


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Return pairs of a name and the expression that gives its value."""
    match node:
        case ast.Call(keywords=keywords):
            yield from ((k.arg, k.value) for k in keywords if k.arg)
        case ast.Assign(targets=targets, value=value):
            yield from ((t.id, value) for t in targets if isinstance(t, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
        case ast.arguments():
            positional = [*node.posonlyargs, *node.args]
            with_default = positional[len(positional) - len(node.defaults) :]
            yield from ((a.arg, d) for a, d in zip(with_default, node.defaults, strict=True))
            pairs = zip(node.kwonlyargs, node.kw_defaults, strict=True)
            yield from ((a.arg, d) for a, d in pairs if d is not None)


@lru_cache(maxsize=1)
def _integers(source: str) -> Mapping[ast.AST, tuple[int, ...]]:
    """Return the integers that expressions may evaluate to, if they can be parsed."""
    known: dict[ast.AST, tuple[int, ...]] = {}
    for node in reversed(nodes_of(source)):
        if not isinstance(node, _VALUED):
            continue
        found = (n for n in _values(node, known) if abs(n) <= _LARGEST)
        if values := tuple(dict.fromkeys(islice(found, _MOST_VALUES))):
            known[node] = values
    return known


def _values(node: ast.AST, known: Mapping[ast.AST, tuple[int, ...]]) -> Iterator[int]:
    """Yield the integers of an expression; those of its parts are known."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            yield value
        case (
            ast.List(elts=parts)
            | ast.Tuple(elts=parts)
            | ast.Set(elts=parts)
            | ast.Call(args=parts)
        ):
            for part in parts:
                yield from known.get(part, ())
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*known.get(body, ()), *known.get(orelse, ()))
        case ast.BinOp(left=left, right=ast.Call(func=ast.Attribute(attr="element_size"))):
            for size in (4, 2):
                yield from (a // size for a in known.get(left, ()))
        case ast.BinOp(left=left, op=op, right=right):
            for a in known.get(left, ()):
                for b in known.get(right, ()):
                    yield from _folded(op, a, b)


def _folded(op: ast.operator, a: int, b: int) -> Iterator[int]:
    match op:
        case ast.Mult():
            yield a * b
        case ast.LShift() if 0 <= b <= 16:
            yield a << b
        case ast.Pow() if 0 <= b <= 16 and abs(a) <= 2:
            yield a**b
        case ast.FloorDiv() if b:
            yield a // b
