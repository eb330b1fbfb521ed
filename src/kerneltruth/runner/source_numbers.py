"""Find numbers in a candidate's source that make sizes around them worth trying; nothing runs."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache

from kerneltruth.runner.bundle import parsed

_BLOCK_NAME = re.compile(r"BLOCK|TILE|CHUNK|^NUM_(?!WARPS|STAGES|CTAS)", re.IGNORECASE)
_BLOCK_RANGE = range(2, 65537)
# Smaller sizes are tried anyway.
_THRESHOLDS = range(8, 2**20 + 1)
_MOST_THRESHOLDS = 6
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
    found = {
        number
        for node in nodes_of(source)
        for name, value in _bindings(node)
        if _BLOCK_NAME.search(name)
        for number in _integers(value)
    }
    return tuple(sorted(n for n in found if n in _BLOCK_RANGE))


def thresholds(source: str) -> tuple[int, ...]:
    """Return at most six sizes at which the source may branch differently.

    They are the numbers that its conditions and asserts compare with, the arguments of `min` and
    `max`, and the limits of narrow dtypes that it converts indices to.
    """
    nodes = nodes_of(source)
    names: dict[str, list[int]] = {}
    for node in nodes:
        for name, value in _bindings(node):
            names.setdefault(name, []).extend(_integers(value))
    compared = {
        number
        for node in nodes
        for part in _compared(node)
        for number in (*_integers(part), *names.get(getattr(part, "id", ""), ()))
    }
    narrowed = {n for node in nodes for n in _narrowed(node)}
    found = sorted(n for n in compared if n in _THRESHOLDS)
    found += sorted(narrowed - compared)
    return tuple(found[:_MOST_THRESHOLDS])


# Each function here examines one whole source.
@lru_cache(maxsize=1)
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a source; none if it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(ast.walk(tree))


def _compared(node: ast.AST) -> Iterator[ast.expr]:
    """Return what a condition compares, and what `min` and `max` choose from."""
    match node:
        case (
            ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test)
        ):
            for inner in ast.walk(test):
                if isinstance(inner, ast.Compare):
                    yield from (inner.left, *inner.comparators)
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


def _integers(node: ast.expr) -> Iterator[int]:
    """Return integers that an expression may evaluate to, if they can be parsed."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            yield value
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            for item in items:
                yield from _integers(item)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _integers(body)
            yield from _integers(orelse)
        case ast.Call(args=arguments):
            for argument in arguments:
                yield from _integers(argument)
        case ast.BinOp(left=left, right=ast.Call(func=ast.Attribute(attr="element_size"))):
            for size in (4, 2):
                yield from (a // size for a in _integers(left))
        case ast.BinOp(left=left, op=op, right=right):
            for a in _integers(left):
                for b in _integers(right):
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
