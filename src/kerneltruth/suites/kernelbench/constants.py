"""Find the constants of a problem file that may take other values, in its syntax tree."""

from __future__ import annotations

import ast
import math
import operator
import symtable
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Constants = dict[str, Any]

# A literal size inside get_inputs counts as a constant from this value on: smaller ones are ranks,
# image channels or class counts that the model depends on.
_LEAST_LITERAL = 16
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}
_LARGEST = 2**40
# The functions that make a problem's inputs: a candidate's file omits them, or has its own.
_HARNESS = ("get_inputs", "get_init_inputs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One number among the constants: a constant, or the equal entries of a tuple or list."""

    name: str
    value: int
    places: tuple[int, ...] = ()

    def put(self, constants: Constants, value: int) -> Constants:
        """Return the constants with another value here."""
        if not self.places:
            return constants | {self.name: value}
        entries = list(constants[self.name])
        for place in self.places:
            entries[place] = value
        kind = type(constants[self.name])
        return constants | {self.name: kind(entries)}

    def get(self, constants: Constants) -> int:
        """Return the value that the constants have here."""
        whole = constants[self.name]
        return int(whole[self.places[0]] if self.places else whole)


def constants_of(tree: ast.Module, held: Collection[str] = ()) -> Constants:
    """Return module-level ints, tuples and lists of ints by name, and large sizes in get_inputs.

    A value computed from other constants follows them and is not one itself. A size written inside
    `get_inputs`, or beside other constants, is named by its place: `get_inputs:224`.

    Args:
        tree: of the file.
        held: names that keep their values (see `read_by_model`).
    """
    found: Constants = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            found |= _assigned(statement)
        elif isinstance(statement, ast.FunctionDef) and statement.name == "get_inputs":
            found |= {f"{statement.name}:{n.value!r}": n.value for n in sizes_in(statement)}
    return {n: v for n, v in found.items() if n.partition(":")[0] not in held}


def read_by_model(source: str, tree: ast.Module) -> frozenset[str]:
    """Return module names that classes and functions read, and the names these are made of.

    They are part of the model: a candidate has them in its own file, with the problem file's
    values.

    Raises:
        SyntaxError: the source cannot be compiled.
    """
    module = symtable.symtable(source, "<problem>", "exec")
    blocks = [b for b in module.get_children() if b.get_name() not in _HARNESS]
    held = {name for block in blocks for name in _read_from_outside(block)}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name not in _HARNESS:
            held |= _names_in(*statement.args.defaults, *statement.decorator_list)
    makers = [s for s in tree.body if isinstance(s, ast.Assign)]
    # What a held name is computed from may itself be computed from others above it.
    for statement in reversed(makers):
        if any(held & _names_in(target) for target in statement.targets):
            held |= _names_in(statement.value)
    return frozenset(held)


def _read_from_outside(block: symtable.SymbolTable) -> Iterator[str]:
    """Return global names that a class or function reads."""
    yield from (s.get_name() for s in block.get_symbols() if s.is_global())
    for inner in block.get_children():
        yield from _read_from_outside(inner)


def _names_in(*nodes: ast.AST) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _assigned(statement: ast.Assign) -> Constants:
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        number = _value(value)
        if _is_size(number):
            return {target.id: number}
        beside = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        return {f"{target.id}:{n.value!r}": n.value for n in _large(beside)}
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = zip(target.elts, value.elts, strict=False)
        named = {t.id: _value(v) for t, v in pairs if isinstance(t, ast.Name)}
        return {n: v for n, v in named.items() if _is_size(v)}
    return {}


def _is_size(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return bool(value) and all(type(n) is int for n in value)
    return type(value) is int


def _value(node: ast.expr) -> Any:
    """Return the value of an expression of literals; None for any other."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Tuple(elts=items):
            return tuple(_value(i) for i in items)
        case ast.List(elts=items):
            return [_value(i) for i in items]
        case ast.BinOp(left=left, op=op, right=right):
            return _combined(_value(left), op, _value(right))
    return None


def _combined(left: Any, op: ast.operator, right: Any) -> Any:
    if isinstance(left, list) and isinstance(op, ast.Mult) and type(right) is int and right <= 1024:
        return left * right
    if type(left) is not int or type(right) is not int or type(op) not in _OPERATORS:
        return None
    if isinstance(op, ast.Pow | ast.LShift) and not 0 <= right <= 40:
        return None
    try:
        value = _OPERATORS[type(op)](left, right)
    except ArithmeticError:
        return None
    return value if abs(value) <= _LARGEST else None


def sizes_in(function: ast.FunctionDef) -> Iterator[ast.Constant]:
    """Return the literal sizes in the calls of a function, without bounds of random integers."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            for argument in node.args:
                if isinstance(argument, ast.Tuple | ast.List):
                    yield from _large(argument.elts)
                elif not _is_randint(node):
                    yield from _large([argument])


def _is_randint(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            pass
        case _:
            return False
    return name.startswith("randint") or name in ("random_", "full", "full_like")


def _large(entries: Iterable[ast.expr]) -> Iterator[ast.Constant]:
    for entry in entries:
        value = entry.value if isinstance(entry, ast.Constant) else None
        if isinstance(entry, ast.Constant) and type(value) is int and value >= _LEAST_LITERAL:
            yield entry


def slots_of(constants: Constants) -> tuple[Slot, ...]:
    """Return the numbers among the constants that may vary: the positive ones."""
    found: list[Slot] = []
    for name, value in constants.items():
        if type(value) is int:
            found += [Slot(name=name, value=value)] if value > 0 else []
            continue
        by_value: dict[int, list[int]] = {}
        for place, entry in enumerate(value):
            by_value.setdefault(entry, []).append(place)
        found += [
            Slot(name=name, value=n, places=tuple(places))
            for n, places in by_value.items()
            if n > 0
        ]
    return tuple(found)


def label(constants: Constants) -> str:
    """Format the constants for people and case names: `batch_size=3 dim=257`."""
    return " ".join(f"{n.replace(':', ' ')}={_short(v)}" for n, v in constants.items())


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 3 and len(set(value)) == 1:
        return f"[{value[0]}]*{len(value)}"
    return repr(value).replace(" ", "")


def elements(shape: tuple[int, ...] | list[int]) -> int:
    """Return how many elements a shape has."""
    return math.prod(shape)
