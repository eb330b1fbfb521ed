"""Find the constants of a problem file that may take other values, in its syntax tree."""

from __future__ import annotations

import ast
import math
import operator
import symtable
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Sizes by name, some as a tuple or list of several.
Constants = dict[str, int | tuple[int, ...] | list[int]]

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
# A function without weights depends on sizes through its inputs alone: any number may be one.
_LEAST_OF_FUNCTION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One number among the constants: a constant, or the equal entries of a tuple or list."""

    name: str
    value: int
    places: tuple[int, ...] = ()

    def put(self, constants: Constants, value: int) -> Constants:
        """Return the constants with another value here."""
        whole = constants[self.name]
        if isinstance(whole, int):
            return constants | {self.name: value}
        entries = list(whole)
        for place in self.places:
            entries[place] = value
        return constants | {self.name: type(whole)(entries)}

    def get(self, constants: Constants) -> int:
        """Return the value that the constants have here."""
        whole = constants[self.name]
        return whole if isinstance(whole, int) else whole[self.places[0]]


def constants_of(tree: ast.Module, fixed: Collection[str] = ()) -> Constants:
    """Return module-level ints, tuples and lists of ints by name, and large sizes in get_inputs.

    A value computed from other constants follows them and is not one itself. A size written inside
    `get_inputs`, or beside other constants, is named by its place: `get_inputs:224`.

    Args:
        tree: of the file.
        fixed: names that keep their values (see `read_by_model`).
    """
    found: Constants = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            found |= _assigned(statement)
        elif isinstance(statement, ast.FunctionDef) and statement.name == "get_inputs":
            found |= _by_place(statement.name, sizes_in(statement))
    return {n: v for n, v in found.items() if n.partition(":")[0] not in fixed}


def constants_of_inputs(tree: ast.Module, makes: str, fixed: Collection[str]) -> Constants:
    """Return the constants of a file with a plain function, and those where its inputs are made.

    There, numbers count that a name or a parameter stands for, named `inputs.rows`, and sizes in
    calls, named `inputs:64`.

    Args:
        tree: of the file.
        makes: the function that makes the inputs.
        fixed: names that keep their values (see `read_by_model`).
    """
    found = {n: v for n, v in _of_module(tree).items() if n.partition(":")[0] not in fixed}
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name == makes:
            named = {n: v for s in _assignments(function) for n, v in _assigned(s).items()}
            found |= {f"{makes}.{n}": v for n, v in named.items()}
            found |= _by_place(makes, sizes_in(function, makes=makes))
    return found


def _by_place(place: str, sizes: Iterable[ast.Constant]) -> Constants:
    return {f"{place}:{n.value!r}": n.value for n in sizes if isinstance(n.value, int)}


def _of_module(tree: ast.Module) -> Constants:
    return {n: v for s in tree.body if isinstance(s, ast.Assign) for n, v in _assigned(s).items()}


def _assignments(function: ast.FunctionDef) -> list[ast.Assign]:
    """Return what a function assigns once, and the defaults of its parameters."""
    found = [s for s in function.body if isinstance(s, ast.Assign)]
    names = [name for s in found for name in _names_in(*s.targets)]
    once = [s for s in found if all(names.count(n) == 1 for n in _names_in(*s.targets))]
    arguments, defaults = function.args.args, function.args.defaults
    pairs = zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True)
    given = [ast.Assign([ast.Name(a.arg)], value) for a, value in pairs]
    return [*once, *given]


def read_by_model(
    source: str, tree: ast.Module, harness: Collection[str] = _HARNESS
) -> frozenset[str]:
    """Return module names that classes and functions read, and the names these are made of.

    They are part of the model: a candidate has them in its own file, with the problem file's
    values.

    Args:
        source: of the file.
        tree: of the same.
        harness: the functions that make the inputs.

    Raises:
        SyntaxError: the source cannot be compiled.
    """
    module = symtable.symtable(source, "<problem>", "exec")
    blocks = [b for b in module.get_children() if b.get_name() not in harness]
    fixed = {name for block in blocks for name in _read_from_outside(block)}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name not in harness:
            fixed |= _names_in(*statement.args.defaults, *statement.decorator_list)
    makers = [s for s in tree.body if isinstance(s, ast.Assign)]
    # What a fixed name is computed from may itself be computed from others above it.
    for statement in reversed(makers):
        if any(fixed & _names_in(target) for target in statement.targets):
            fixed |= _names_in(statement.value)
    return frozenset(fixed)


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
        return _by_place(target.id, _large(beside))
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


def sizes_in(function: ast.FunctionDef, makes: str | None = None) -> Iterator[ast.Constant]:
    """Return the literal sizes in the calls of a function, without bounds of random integers.

    Args:
        function: of the file.
        makes: the name of the function that makes a plain function's inputs: there, small sizes
            count too, and a bound of random integers that equals a size follows it.
    """
    plain = function.name == makes
    least = _LEAST_OF_FUNCTION if plain else _LEAST_LITERAL
    bounds: list[ast.Constant] = []
    sizes: list[ast.Constant] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and not (plain and _is_range(node)):
            for argument in node.args:
                if isinstance(argument, ast.Tuple | ast.List):
                    sizes += _large(argument.elts, least)
                else:
                    (bounds if _is_randint(node) else sizes).extend(_large([argument], least))
    yield from sizes
    if plain:
        known = {size.value for size in sizes}
        # A small bound may be a count of classes that equals a size by accident.
        yield from (b for b in _large(bounds) if b.value in known)


def _is_range(call: ast.Call) -> bool:
    """Return whether a call counts arguments, not elements."""
    return isinstance(call.func, ast.Name) and call.func.id == "range"


def _is_randint(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            pass
        case _:
            return False
    return name.startswith("randint") or name in ("random_", "full", "full_like")


def _large(entries: Iterable[ast.expr], least: int = _LEAST_LITERAL) -> Iterator[ast.Constant]:
    for entry in entries:
        value = entry.value if isinstance(entry, ast.Constant) else None
        if isinstance(entry, ast.Constant) and type(value) is int and value >= least:
            yield entry


def slots_of(constants: Constants) -> tuple[Slot, ...]:
    """Return the numbers among the constants that may vary: the positive ones."""
    found: list[Slot] = []
    for name, value in constants.items():
        if isinstance(value, int):
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


def elements(shape: tuple[int, ...] | list[int]) -> int:
    """Return how many elements a shape has."""
    return math.prod(shape)
